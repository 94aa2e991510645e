"""Operators that hold graphs, and those that become other than one node."""

import pytest
from torch_programs import Program, Refs, graph_of

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
