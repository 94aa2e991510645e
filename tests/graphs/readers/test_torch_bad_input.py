"""Damaged and hostile ``.pt2`` archives: one sentence that names the file and the node."""

import zipfile

import pytest
from torch_programs import Program, write_archive

from go_rl.core import ReadError
from go_rl.graphs.readers import load


def small():
    """A program of two operators, as a document."""
    program = Program(x=(4, 8))
    weight = program.weight("p_w", (5, 8), "last.weight")
    y = program.op("linear", [(4, 5)], input="x", weight=weight)
    program.op("relu", [(4, 5)], self=y)
    return program.document()


def with_value(way, value):
    document = small()
    *before, last = way
    place = document
    for key in before:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


GRAPH = ("graph_module", "graph")
NODE = (*GRAPH, "nodes", 0)
EDITS = {
    "newer schema": (
        ("schema_version", "major"), 9, r"schema 9.20 \(PyTorch 2.13.0\), newer than 8",
    ),
    "older schema": (("schema_version", "major"), 7, r"schema 7.20 .*older than 8"),
    "no schema": (("schema_version",), None, "field 'schema_version' is missing"),
    "no module": (("graph_module",), None, "field 'graph_module' is missing"),
    "no nodes": ((*GRAPH, "nodes"), None, "graph: field 'nodes' is missing"),
    "nodes of another type": ((*GRAPH, "nodes"), 7, "nodes must be a list, not 7"),
    "node without a target": ((*NODE, "target"), None, "node 0: field 'target' is missing"),
    "node of another type": (NODE, [], "node 0: must be an object with a field 'target'"),
    "operand of two forms": (
        (*NODE, "inputs", 0, "arg"), {"as_int": 1, "as_float": 2.0},
        "node 'n0': input must be an object with one field",
    ),
    "operand of another type": (
        (*NODE, "inputs", 0, "arg"), {"as_int": "x"}, "node 'n0': input must be a whole number",
    ),
    "operand that is absent": (
        (*NODE, "inputs", 0, "arg"), {"as_tensor": {"name": "z"}},
        "node 'n0' reads 'z', which no node before it makes",
    ),
    "cycle": (
        (*NODE, "inputs", 0, "arg"), {"as_tensor": {"name": "v1_0"}},
        "node 'n0' reads 'v1_0', which no node before it makes",
    ),
    "operand that is left out": ((*NODE, "inputs"), [], r"node 'n0' \(aten.linear\): operand"),
    "result without a type": (
        (*GRAPH, "tensor_values", "v0_0"), None, "tensor 'v0_0' has no type",
    ),
    "negative size": (
        (*GRAPH, "tensor_values", "x", "sizes", 0), {"as_int": -4},
        "size must be 0 or more, not -4",
    ),
    "enormous size": (
        (*GRAPH, "tensor_values", "x", "sizes", 0), {"as_int": 1 << 70},
        "between -2\\^62 and 2\\^62",
    ),
    "enormous shape": (
        (*GRAPH, "tensor_values", "x", "sizes"), [{"as_int": 1 << 40}] * 9,
        "tensor 'x': its shape .* has more than 2\\^62 elements",
    ),
    "size of another type": (
        (*GRAPH, "tensor_values", "x", "sizes", 0), {"as_int": 1.5}, "must be a whole number",
    ),
    "unknown element type": (
        (*GRAPH, "tensor_values", "x", "dtype"), 99, "tensor 'x': element type 99",
    ),
    "output that is absent": (
        ("graph_module", "signature", "output_specs", 0),
        {"user_output": {"arg": {"as_tensor": {"name": "gone"}}}},
        "output 'gone' is made by no node",
    ),
    "weight without a name": (
        ("graph_module", "signature", "input_specs", 1), {"parameter": {"arg": 3}},
        "input_specs: parameter: must be an object",
    ),
    "range of another type": (("range_constraints",), {"s0": {"min_val": "2"}}, "range of 's0'"),
    "no operators": ((*GRAPH, "nodes"), [], "output 'v1_0' is made by no node"),
}  # fmt: skip
"""Place in the document, its value (None: dropped), and words of the answer."""


@pytest.mark.parametrize("name", EDITS)
def test_documents(tmp_path, name):
    way, value, said = EDITS[name]
    with pytest.raises(ReadError, match=rf"model.pt2: .*{said}"):
        load(write_archive(tmp_path / "model.pt2", with_value(way, value)))


def test_a_tensor_that_two_nodes_make_is_refused(tmp_path):
    document = small()
    nodes = document["graph_module"]["graph"]["nodes"]
    nodes[1]["outputs"] = nodes[0]["outputs"]
    with pytest.raises(ReadError, match=r"node 'n1' makes 'v0_0', which is there before"):
        load(write_archive(tmp_path / "model.pt2", document))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"a/models/model.json": "{", "a/x": ""}, "a/models/model.json is not JSON"),
        ({"a/models/model.json": "[]"}, "must be an object"),
        ({"a/models/model.json": '{"a": NaN}'}, "NaN is no JSON number"),
        ({"a/models/one.json": "{}", "a/models/two.json": "{}"}, "2 programs .*one is needed"),
    ],
)
def test_archives(tmp_path, members, said):
    with zipfile.ZipFile(tmp_path / "model.pt2", "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    with pytest.raises(ReadError, match=rf"model.pt2: .*{said}"):
        load(tmp_path / "model.pt2")


def test_a_truncated_archive(tmp_path):
    path = write_archive(tmp_path / "model.pt2", small())
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ReadError, match=r"a truncated or damaged archive \(\.npz or \.pt2"):
        load(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"training": True}, "training=True applies to PipeDream"),
        ({"weights": (0,)}, "does not apply to a PyTorch export"),
        ({"training": "sgd"}, "a program without gradients"),
    ],
)
def test_options_that_an_archive_does_not_have(tmp_path, options, said):
    with pytest.raises(ReadError, match=said):
        load(write_archive(tmp_path / "model.pt2", small()), **options)


@pytest.mark.parametrize("kind", ["cond", "while_loop", "scan", "wrap", "flex_attention"])
def test_operators_that_lack_their_graphs(kind):
    program = Program(x=(4,))
    program.op(f"torch.ops.higher_order.{kind}", [(4,)], x="x")
    with pytest.raises(ReadError, match=r"net.pt2: node 'n0'"):
        program.read(trip_count=3)
