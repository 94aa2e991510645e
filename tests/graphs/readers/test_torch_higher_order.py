"""Operators that hold graphs, and those that become other than one node."""

import pytest
from torch_programs import Program, Refs, graph_of, value

from go_rl.core import OpKind, ReadError

REGIONS = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "tag_activation_checkpoint", "wrap",
           "invoke_subgraph", "autograd_function_apply")  # fmt: skip


def linear_body(rows=4, **more):
    """A graph of one product with a weight, and what else it reads."""
    inner = Program(a=(rows, 8), w=(8, 8), **more)
    inner.op("linear", [(rows, 8)], "block", input="a", weight="w")
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


@pytest.mark.parametrize("options", [{"trip_count": 6}, {"dims": {"n0.trips": 6}}])
def test_a_loop_is_its_body_times_the_trips(options):
    program = Program(x=(4, 8))
    w = program.weight("p_w", (8, 8))
    condition = Program(a=(4, 8), w=(8, 8))
    condition.op("sum", [()], self="a")
    program.op(
        "torch.ops.higher_order.while_loop", [(4, 8)],
        condition=graph_of(condition),
        body=graph_of(linear_body()), carried=Refs(["x"]), others=Refs([w]),
    )  # fmt: skip
    graph = program.read(**options)
    assert graph.kind.tolist() == [OpKind.INPUT, OpKind.CONTROL]
    assert graph.flops[1] == 6 * (512 + 31)
    assert graph.weight_bytes[1] == 256
    each = 128 + 128 + (128 + 4)  # reads and writes of the body, and of the condition
    assert graph.bytes_accessed[1] == 6 * each + 256


@pytest.mark.parametrize("kind", ["scan", "map_impl"])
def test_a_loop_over_rows(kind):
    program = Program(rows=(5, 4, 8))
    first, w = program.input("first", (4, 8)), program.weight("p_w", (8, 8))
    given = {"rows": Refs(["rows"]), "others": Refs([w])}
    body = linear_body(row=(4, 8))
    inputs = ["a", "w"]
    if kind == "scan":
        given, inputs = {"init": Refs([first]), **given}, ["a", "row", "w"]
    program.op(
        f"torch.ops.higher_order.{kind}", [(5, 4, 8)],
        body=graph_of(body, *inputs), **given,
    )  # fmt: skip
    graph = program.read()
    assert graph.flops[-1] == 5 * 512


def test_attention_whose_scores_a_graph_changes():
    change = Program(score=())
    change.op("add.Tensor", [()], self="score", other="score")
    change.op("mul.Tensor", [()], self="v0_0", other="score")
    shape = (2, 4, 10, 16)
    scores = 2 * 4 * 10 * 10
    for kind, flops in (
        ("flex_attention", scores * (4 * 16 + 5 + 2) - 80),
        ("flex_attention_backward", scores * (10 * 16 + 8 + 2 * 2)),
    ):
        program = Program()
        q, k, v = (program.input(name, shape) for name in "qkv")
        y = program.op(
            f"torch.ops.higher_order.{kind}", [shape], q=q, k=k, v=v,
            change=graph_of(change),
        )  # fmt: skip
        program.output(y)
        assert program.read().flops[-1] == flops


def test_what_vmap_hides_is_counted():
    program = Program(x=(5, 8))
    place = "torch._functorch.predispatch."
    program.op(f"{place}_vmap_increment_nesting", size=5, mode="=error")
    row = program.op(f"{place}_add_batch_dim", [(8,)], self="x", dim=0, level=1)
    row = program.op("add.Tensor", [(8,)], self=row, other=1.0)
    y = program.op(f"{place}_remove_batch_dim", [(5, 8)], self=row, level=1, size=5, dim=0)
    program.op(f"{place}_vmap_decrement_nesting")
    program.op("relu", [(5, 8)], self=y)
    graph = program.read()
    assert graph.op_type == ("input", "aten.add", "aten.relu")
    assert graph.flops.tolist() == [0, 40, 40]


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("auto_functionalized", []), ("out_dtype", []), ("run_and_save_rng_state", []),
        ("run_with_rng_state", ["state"]), ("with_effects", []),
    ],
)  # fmt: skip
def test_an_operator_that_another_calls(kind, first):
    program = Program()
    given = [program.input("state", (16,))] if first else []
    x, w = program.input("x", (4, 8)), program.weight("p_w", (8, 5))
    y = program.op(f"torch.ops.higher_order.{kind}", [(4, 5)])
    named = [("", {"as_operator": "torch.ops.aten.mm.default"}), ("", x), ("", w)]
    program.graph["nodes"][-1]["inputs"] = [
        {"name": name, "arg": value(each), "kind": 1}
        for name, each in [*[("rng", s) for s in given], *named]
    ]
    program.output(y)
    graph = program.read()
    assert graph.op_type[-1] == "aten.mm"
    assert graph.flops[-1] == 2 * 4 * 8 * 5


def test_numbers_and_checks_are_no_operators():
    program = Program(x=("s0", 8))
    program.graph["sym_int_values"]["size"] = {"as_expr": {"expr_str": "Symbol('s0')"}}
    program.op("sym_size.int", self="x", dim=0)
    program.op("_operator.mul", a="#size", b=2)
    program.op("_assert_scalar", self=True, assert_msg="=no")
    y = program.op("view", [("s0", 8)], self="x", size=[1])
    program.op("relu", [("s0", 8)], self=y)
    assert program.read(dims={"s0": 3}).op_type == ("input", "aten.relu")


def recurrent(kind, layers=1, both=False, steps=3, projected=0):
    """A recurrent operator of 5 inputs and 7 hidden elements over a batch of 2."""
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[kind]
    directions, inputs, params = 1 + both, 5, []
    program = Program(x=(steps, 2, 5), state=(layers * directions, 2, 7))
    for layer in range(layers):
        for direction in range(directions):
            sizes = [(gates * 7, inputs), (gates * 7, 7), (gates * 7,), (gates * 7,)]
            sizes += [(projected, 7)] * bool(projected)
            params += [
                program.weight(f"w{layer}{direction}{i}", size) for i, size in enumerate(sizes)
            ]
        inputs = 7 * directions
    hx = Refs(["state", "state"]) if kind == "lstm" else "state"
    last = (layers * directions, 2, 7)
    program.op(
        f"{kind}.input", [(steps, 2, 7 * directions), last, last][: 3 if kind == "lstm" else 2],
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


@pytest.mark.parametrize(("steps", "projected"), [(20_000, 0), (3, 4)])
def test_long_or_projected_layers_are_one_node(steps, projected):
    program, _ = recurrent("lstm", steps=steps, projected=projected)
    graph = program.read()
    assert graph.op_type == ("input", "input", "aten.lstm")
    assert graph.kind[2] == OpKind.CONTROL
    assert graph.meta["notes"] == ["n0: its steps are folded into one node"]


def test_recurrent_operators_without_their_parameters():
    program = Program()
    x, state = program.input("x", (3, 2, 5)), program.input("state", (1, 2, 7))
    program.op("gru.input", [(3, 2, 7)], input=x, hx=state, params=Refs([x]), num_layers=1)
    with pytest.raises(ReadError, match=r"node 'n0' \(aten.gru\): input, states and 2 parameters"):
        program.read()
