"""Programs of `torch.export` as graphs: archives that PyTorch wrote, and documents made here."""

from pathlib import Path

import pytest
from torch_programs import Program, Refs

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


def test_the_same_model_decomposed_by_pytorch():
    whole, core = (
        load(ARCHIVES / f"{name}.pt2", dims)
        for name, dims in (("words", {"words_0": 4}), ("words_core", None))
    )
    assert weights_once(whole) - weights_once(core) == 11 * 4 * 64  # a bias is added before steps
    assert core.flops.sum() == pytest.approx(whole.flops.sum(), rel=0.04)


def test_a_joint_program_written_by_pytorch():
    graph = load(ARCHIVES / "joint.pt2")
    forward = graph.flops[graph.index["convolution"]] - 2 * 8 * 16
    backward = graph.flops[graph.index["convolution_backward"]]
    assert forward == 2 * 2 * 8 * 3 * 11**2
    assert backward == forward + 2 * 8 * 16  # of weights and bias; the image needs no gradient
    assert graph.is_backward[graph.index["convolution_backward"]]
    assert not graph.is_backward[graph.index["convolution"]]
    assert graph.is_output[graph.index["convolution_backward"]]


@pytest.mark.parametrize(("optimiser", "flops", "states"), [("sgd", 2, 0), ("adam", 13, 2)])
def test_updates_of_a_joint_program(optimiser, flops, states):
    before = load(ARCHIVES / "joint.pt2")
    graph = load(ARCHIVES / "joint.pt2", training=optimiser)
    parameters = 8 * 27 + 8 + 2 * 8 + 4 * 8 + 4
    updates = [i for i, op in enumerate(graph.op_type) if op == optimiser]
    assert len(updates) == 6
    assert graph.flops[updates].sum() == flops * parameters
    assert graph.weight_bytes[updates].sum() == 4 * parameters * (1 + states)
    assert not graph.is_backward[updates].any()
    assert not graph.is_output[graph.index["convolution_backward"]]
    assert graph.flops.sum() == before.flops.sum() + flops * parameters


def test_a_branch_and_loops_written_by_pytorch():
    graph = load(ARCHIVES / "control.pt2", trip_count=5)
    linear = 2 * 7 * 16 * 16 + 7 * 16
    row = 2 * 16 * 16 + 16 + 16 + 16
    assert graph.flops[graph.index["cond/linear"]] == linear
    assert graph.flops[graph.index["scan"]] == 7 * row
    assert graph.flops[graph.index["while_loop"]] == 5 * (linear + 2)
    assert graph.kind[graph.index["scan"]] == OpKind.CONTROL
    assert graph.meta["notes"] == ["cond: of its branches the dearest is taken, true_graph_0"]
    by_name = load(ARCHIVES / "control.pt2", {"while_loop.trips": 5})
    assert by_name.flops.sum() == graph.flops.sum()
    with pytest.raises(ReadError, match=r"'while_loop' is a loop .*--dim while_loop.trips=8"):
        load(ARCHIVES / "control.pt2")


def test_views_are_their_operand_and_a_reshape_copies_where_it_must():
    program = Program(x=(4, 6))
    turned = program.op("permute", [(6, 4)], self="x", dims=[1, 0])
    program.graph["tensor_values"][turned]["strides"] = [{"as_int": 1}, {"as_int": 6}]
    flat = program.op("reshape", [(24,)], self=turned, shape=[24])
    same = program.op("view", [(24,)], self="x", size=[24])
    both = program.op("add.Tensor", [(24,)], self=flat, other=same)
    program.output(both)
    graph = program.read()
    assert graph.op_type == ("input", "aten.reshape", "aten.add")
    assert graph.bytes_accessed.tolist() == [0, 2 * 4 * 24, 3 * 4 * 24]
    assert graph.flops.tolist() == [0, 0, 24]


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


def test_a_change_of_memory_format_copies():
    program = Program(x=(2, 3, 4, 4))
    y = program.op("contiguous", [(2, 3, 4, 4)], self="x", memory_format=2)
    again = program.op("contiguous", [(2, 3, 4, 4)], self=y, memory_format=2)
    program.graph["tensor_values"][y]["strides"] = [{"as_int": s} for s in (48, 1, 12, 3)]
    program.graph["tensor_values"][again]["strides"] = [{"as_int": s} for s in (48, 1, 12, 3)]
    program.op("relu", [(2, 3, 4, 4)], self=again)
    assert program.read().op_type == ("input", "aten.contiguous", "aten.relu")


def test_a_change_of_type_is_work_and_of_place_is_none():
    program = Program(x=(4, 8))
    y = program.op("to.device", [(4, 8)], self="x")
    y = program.op("to.dtype", [((4, 8), "int32")], self=y, dtype=4)
    program.op("abs", [((4, 8), "int32")], self=y)
    graph = program.read()
    assert graph.op_type == ("input", "aten.to", "aten.abs")
    assert graph.flops.tolist() == [0, 32, 32]


def test_of_an_expanded_tensor_only_what_exists_is_read_and_sent():
    program = Program(x=(1, 8))
    wide = program.op("expand", [(100, 8)], self="x", size=[100, 8])
    program.op("relu", [(100, 8)], self=wide)
    graph = program.read()
    assert graph.edge_bytes.tolist() == [32]
    assert graph.bytes_accessed[1] == 32 + 4 * 800


def test_of_a_tensor_whose_shape_is_asked_for_nothing_is_read():
    program = Program(x=(4, 8))
    high = program.op("exp", [(4, 8)], "high", self="x")
    ones = program.op("full_like", [(4, 8)], "ones", self=high, fill_value=1)
    drawn = program.op("rand_like", [(4, 8)], "drawn", self=high)
    program.op("addcmul", [(4, 8)], self="x", tensor1=ones, tensor2=drawn)
    graph = program.read()
    ones, drawn = graph.index["ones/n1"], graph.index["drawn/n2"]
    assert not {ones, drawn} & set(graph.receivers.tolist())
    assert (graph.kind[ones], graph.bytes_accessed[ones]) == (OpKind.CONSTANT, 0)
    assert graph.bytes_accessed[drawn] == 4 * 32


@pytest.mark.parametrize(
    ("strides", "writes", "copied"),
    [((8, 1), False, False), ((1, 4), False, True), ((8, 1), True, True)],
)
def test_a_clone_is_work_where_it_changes_the_layout_or_something_is_written(
    strides, writes, copied
):
    program = Program()
    x = program.input("x", (4, 8), strides=strides)
    y = program.op("clone", [(4, 8)], self=x)
    program.op("add_.Tensor" if writes else "add.Tensor", [(4, 8)], self=y, other=x)
    assert ("aten.clone" in program.read().op_type) == copied


def test_a_part_is_a_node_without_work():
    program = Program(x=(100, 8))
    parts = [program.op("split.Tensor", [(50, 8), (50, 8)], self="x", split_size=50)]
    program.op("relu", [(50, 8)], self=parts[0])
    graph = program.read()
    assert graph.op_type == ("input", "aten.split", "aten.relu")
    assert (graph.flops[1], graph.bytes_accessed[1]) == (0, 0)
    assert graph.edge_bytes.tolist() == [3200, 1600]


def test_weights_of_one_array_are_tied_and_their_views_are_weights():
    program = Program(x=(4, 16))
    a = program.weight("p_a", (32, 16), "a.weight", "weight_0")
    b = program.weight("p_b", (32, 16), "b.weight", "weight_0")
    half = program.op("slice.Tensor", [(16, 16)], self=b, dim=0, start=0, end=16)
    half = program.op("_to_copy", [((16, 16), "float16")], self=half, dtype=6)
    y = program.op("linear", [(4, 32)], "first", input="x", weight=a)
    z = program.op("linear", [(4, 16)], "second", input="x", weight=half)
    program.op("cat", [(4, 48)], tensors=Refs([y, z]), dim=1)
    graph = program.read()
    assert graph.names == ("x", "first/n2", "second/n3", "n4")
    assert graph.weight_bytes.tolist() == [0, 2048, 2048, 0]
    assert graph.tied_bytes.tolist() == [2048]


def test_what_an_in_place_operator_writes_is_read_after_it():
    program = Program(x=(4,))
    y = program.op("relu", [(4,)], self="x")
    program.op("add_.Tensor", [(4,)], self=y, other="x")
    program.op("exp", [(4,)], self=y)
    graph = program.read()
    assert graph.op_type == ("input", "aten.relu", "aten.add", "aten.exp")
    assert (2, 3) in set(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))


def test_a_constant_is_no_work():
    program = Program(x=(4,))
    ones = program.op("full", [(4,)], size=[4], fill_value=1.0)
    program.op("mul.Tensor", [(4,)], self="x", other=ones)
    graph = program.read()
    assert graph.kind.tolist() == [OpKind.INPUT, OpKind.CONSTANT, OpKind.ELEMENTWISE]
    assert graph.bytes_accessed[1] == 0


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
