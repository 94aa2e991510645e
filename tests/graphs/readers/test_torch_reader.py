"""PyTorch graphs and higher-order operators."""

from pathlib import Path

import pytest
from torch_programs import Program, Refs, graph_of

from go_rl.core import OpKind, ReadError, UnknownOperatorError
from go_rl.graphs.readers import load

ARCHIVES = Path(__file__).parent / "pt2"


def weights_once(graph):
    """Bytes of all weights, tied ones once."""
    tied = sum(graph.tied_bytes[array] for array in graph.tied_array)
    return graph.weight_bytes.sum() - tied + graph.tied_bytes.sum()


def test_a_language_model_written_by_pytorch():
    graph = load(ARCHIVES / "words.pt2", {"words_0": 4})
    rows, width = 4 * 12, 16
    products = 2 * (2 * rows * width * (3 * width + width)) + 2 * rows * width * 50
    scores = 2 * 4 * 2 * 12 * 12 * (4 * 8 + 6) - 2 * 4 * 2 * 12
    steps = 2 * rows * 4 * width * 2 * width
    rest = graph.flops.sum() - products - scores - steps
    assert 0 < rest < 0.1 * graph.flops.sum()
    block = 16 * 48 + 48 + 16 * 16 + 16 + 32
    recurrent = 2 * 16 * 64 + 2 * 64
    parameters = 50 * 16 + 2 * block + recurrent + 12 * 16
    biases = (
        11 * 2 * 4 * 64
    )  # small arrays are each reader's own: those of 12 steps, once too often
    assert weights_once(graph) == 4 * parameters + biases
    assert graph.tied_bytes.tolist() == [4 * 50 * 16, 4 * 16 * 64]
    assert graph.meta["dims"] == {"s46": 4}
    assert "blocks.0.qkv/linear" in graph.index
    assert graph.source[graph.index["blocks.1/gelu_1"]] == "blocks.1 (Block) record.py:41"


def test_a_branch_and_loops_written_by_pytorch():
    graph = load(ARCHIVES / "control.pt2", trip_count=5)
    linear = 2 * 7 * 16 * 16 + 7 * 16
    row = 2 * 16 * 16 + 16 + 16 + 16
    assert graph.flops[graph.index["cond/linear"]] == linear
    assert graph.flops[graph.index["scan"]] == 7 * row
    moved = 7 * 4 * 16  # of a trip: linear reads and writes one row, the sum three, the product two
    assert graph.bytes_accessed[graph.index["scan"]] == 7 * moved + 4 * (16 * 16 + 16)
    assert graph.flops[graph.index["while_loop"]] == 5 * (linear + 2)
    assert graph.kind[graph.index["scan"]] == OpKind.CONTROL
    assert graph.meta["notes"] == ["cond: of its branches the dearest is taken, true_graph_0"]
    by_name = load(ARCHIVES / "control.pt2", {"while_loop.trips": 5})
    assert by_name.flops.sum() == graph.flops.sum()
    with pytest.raises(ReadError, match=r"'while_loop' is a loop .*--dim while_loop.trips=8"):
        load(ARCHIVES / "control.pt2")


@pytest.mark.parametrize(
    ("strides", "target", "copied"),
    [
        ((6, 1), (24,), False),
        ((1, 4), (24,), True),
        ((1, 4), (2, 2, 6), False),
        ((6, 1), (2, 12), False),
        ((12, 1), (2, 2, 6), False),
        ((12, 1), (24,), True),
        ((0, 1), (24,), True),
    ],
)
def test_reshapes_copy_as_in_pytorch(strides, target, copied):
    """Expected values: whether ``x.as_strided((4, 6), strides).view(target)`` raises."""
    program = Program()
    x = program.input("x", (4, 6), strides=strides)
    y = program.op("reshape", [target], self=x, shape=list(target))
    program.op("relu", [target], self=y)
    assert ("aten.reshape" in program.read().op_type) == copied


def test_sizes_follow_from_dims_or_shapes():
    program = Program(x=("s7", 16))
    program.ranges["s7"] = {"min_val": 2, "max_val": 64}
    longer = "Add(Mul(Integer(2), Symbol('s7', positive=True)), Integer(1))"
    y = program.op("cat", [(longer, 16)], tensors=Refs(["x", "x", "x"]), dim=0)
    program.op("relu", [(longer, 16)], self=y)
    for options in ({"dims": {"s7": 5}}, {"dims": {"x_0": 5}}, {"inputs": {"x": (5, 16)}}):
        graph = program.read(**options)
        assert graph.flops.sum() == 11 * 16
        assert graph.meta["dims"] == {"s7": 5}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, r"sizes are missing of s7 \(2 to 64, x_0, 8 in the example\).*--dim s7=8"),
        ({"dims": {"s7": 65}}, "s7 must be 2 to 64, not 65"),
        ({"dims": {"s7": 4, "x_0": 5}}, "s7 has two sizes, 4 and 5"),
        ({"dims": {"batch": 4}}, "no dimension 'batch'. It has s7"),
        ({"inputs": {"y": (4, 16)}}, "no input 'y'. It has x"),
        ({"inputs": {"x": (4, 17)}}, "input 'x' has shape s7x16, not 4x17"),
        ({"inputs": {"x": 3}}, "input 'x' needs a shape, not a value, 3"),
        ({"dims": {"s7": 4}, "optimiser": "sgd"}, "a program without gradients"),
    ],
)
def test_sizes_that_do_not_fit(options, said):
    program = Program()
    program.op("relu", [("s7", 16)], self=program.input("x", ("s7", 16)))
    program.ranges["s7"] = {"min_val": 2, "max_val": 64}
    with pytest.raises(ReadError, match=f"^net.pt2: .*{said}"):
        program.read(**options)


@pytest.mark.parametrize(("least", "most", "example"), [(1, 7, 7), (12, None, 12), (0, 64, 8)])
def test_the_size_in_the_message_is_in_its_range(least, most, example):
    program = Program()
    program.op("relu", [("u0", 16)], self=program.input("x", ("u0", 16)))
    for each in program.graph["tensor_values"].values():
        each["sizes"][0]["as_expr"]["hint"] = None
    program.ranges["u0"] = {"min_val": least, "max_val": most}
    with pytest.raises(ReadError, match=f"for example --dim u0={example}$"):
        program.read()


def test_unknown_operators_are_refused_or_counted_by_bytes():
    program = Program(x=(4,))
    y = program.op("torch.ops.mine.spin.default", [(4,)], x="x")
    program.op("gellu", [(4,)], self=y)
    said = r"mine.spin \(1\), aten.gellu \(1\).*--unknown bytes"
    with pytest.raises(UnknownOperatorError, match=said):
        program.read()
    graph = program.read(unknown="bytes")
    assert graph.kind.tolist() == [OpKind.INPUT, OpKind.OTHER, OpKind.OTHER]
    assert graph.bytes_accessed.tolist() == [0, 32, 32]
    assert graph.meta["notes"][0].startswith("operators counted by bytes only: mine.spin (1)")


REGIONS = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "tag_activation_checkpoint", "wrap",
           "invoke_subgraph", "autograd_function_apply")  # fmt: skip


def linear_body():
    """A graph of one product with a weight."""
    inner = Program(a=(4, 8), w=(8, 8))
    inner.op("linear", [(4, 8)], "block", input="a", weight="w")
    return inner


@pytest.mark.parametrize("kind", REGIONS)
def test_a_region_is_its_contents(kind):
    program = Program(x=(4, 8))
    w = program.weight("p_w", (8, 8))
    body = graph_of(linear_body())
    y = program.op(f"torch.ops.higher_order.{kind}", [(4, 8)], body=body, x="x", w=w)
    program.op("relu", [(4, 8)], self=y)
    graph = program.read()
    assert graph.names == ("x", "block/n0/n0", "n1")
    assert graph.flops.tolist() == [0, 512, 32]
    assert graph.weight_bytes.tolist() == [0, 256, 0]


def test_the_dearest_branch_is_taken():
    program = Program(x=(4, 8))
    w = program.weight("p_w", (8, 8))
    which = program.op("gt.Scalar", [((), "bool")], self="x", other=0)
    cheap = Program(a=(4, 8), w=(8, 8))
    cheap.op("relu", [(4, 8)], self="a")
    program.op(
        "torch.ops.higher_order.cond", [(4, 8)], pred=which,
        true=graph_of(cheap),
        false=graph_of(linear_body()), operands=Refs(["x", w]),
    )  # fmt: skip
    graph = program.read()
    assert graph.op_type == ("input", "aten.gt", "aten.linear")
    assert graph.meta["notes"] == ["n1: of its branches the dearest is taken, body"]


def recurrent(kind, layers, both):
    """A recurrent operator of 5 inputs and 7 hidden elements over a batch of 2."""
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[kind]
    directions, inputs, params = 1 + both, 5, []
    program = Program(x=(3, 2, 5), state=(layers * directions, 2, 7))
    for layer in range(layers):
        for direction in range(directions):
            sizes = [(gates * 7, inputs), (gates * 7, 7), (gates * 7,), (gates * 7,)]
            params += [
                program.weight(f"w{layer}{direction}{i}", size) for i, size in enumerate(sizes)
            ]
        inputs = 7 * directions
    hx = Refs(["state", "state"]) if kind == "lstm" else "state"
    last = (layers * directions, 2, 7)
    program.op(
        f"{kind}.input", [(3, 2, 7 * directions), last, last][: 3 if kind == "lstm" else 2],
        input="x", hx=hx, params=Refs(params), has_biases=True, num_layers=layers, dropout=0.0,
        train=False, bidirectional=both, batch_first=False,
    )  # fmt: skip
    return program, gates


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, False), (2, True)])
def test_recurrent_layers_step_by_step(kind, layers, both):
    program, gates = recurrent(kind, layers, both)
    graph = program.read()
    directions, inputs, flops = 1 + both, 5, 0.0
    for _ in range(layers):
        other = 2 * gates * 7 + (17 if gates > 1 else 1) * 7
        flops += directions * 3 * 2 * (2 * gates * 7 * (inputs + 7) + other)
        inputs = 7 * directions
    assert graph.flops.sum() == pytest.approx(flops)
    per_direction = 1 + 2 * 3
    assert graph.num_nodes == 2 + layers * (directions * per_direction + 1)
    assert graph.is_output[[str(n).endswith("states") for n in graph.names]].sum() == 1
