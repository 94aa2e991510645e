"""Recurrent layers are read step by step: a step waits for the one before it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import header, model, value

from go_rl.graphs.readers.onnx.reader import read_onnx_model

STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 48, 32
CELL = {"LSTM": (4, 17), "GRU": (3, 17), "RNN": (1, 1)}
"""Gates, and FLOP of a cell an element besides the bias."""


def layer(op, directions=1, steps=STEPS, outputs=("y",), states=(), layout=0, batch=BATCH):
    gates = CELL[op][0]
    weights = [
        header("w", [directions, gates * HIDDEN, INPUTS]),
        header("r", [directions, gates * HIDDEN, HIDDEN]),
        header("b", [directions, 2 * gates * HIDDEN]),
    ]
    direction = "bidirectional" if directions == 2 else "forward"
    rows = (batch, steps) if layout else (steps, batch)
    inputs = [value("x", [*rows, INPUTS]), *(value(s, [directions, batch, HIDDEN]) for s in states)]
    operands = ["x", "w", "r", "b", *([""] if states else []), *states]
    attributes = {"hidden_size": HIDDEN, "direction": direction, "layout": layout}
    nodes = [helper.make_node(op, operands, list(outputs), "rnn", **attributes)]
    kinds = {
        "y": value("y", [steps, directions, batch, HIDDEN]),
        "h": value("h", [directions, batch, HIDDEN]),
        "c": value("c", [directions, batch, HIDDEN]),
    }
    if layout:
        kinds["y"] = value("y", [batch, steps, directions, HIDDEN])
        kinds |= {n: value(n, [batch, directions, HIDDEN]) for n in ("h", "c")}
    return model(nodes, inputs, [kinds[o] for o in outputs if o], weights)


def longest_chain(graph):
    """Nodes of the longest path."""
    length = np.ones(graph.num_nodes, int)
    for sender, receiver in sorted(
        zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True)
    ):
        length[receiver] = max(length[receiver], length[sender] + 1)
    return length.max()


@pytest.mark.parametrize("op", CELL)
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("directions", [1, 2])
def test_a_layer_is_its_steps(op, layout, directions):
    graph = read_onnx_model(layer(op, directions, layout=layout), "m")
    gates, element = CELL[op]
    products = [n for n in graph.names if n.endswith("/state")]
    assert len(products) == directions * STEPS
    each = 2 * BATCH * gates * HIDDEN * HIDDEN
    assert graph.flops[graph.index[products[-1]]] == each
    of_inputs = 2 * STEPS * BATCH * gates * HIDDEN * INPUTS
    of_cells = STEPS * BATCH * (2 * gates * HIDDEN + element * HIDDEN)
    assert graph.flops.sum() == pytest.approx(directions * (of_inputs + STEPS * each + of_cells))
    # x, the product of all inputs, cells and the products between them, all states side by side.
    assert longest_chain(graph) == 1 + 1 + 2 * STEPS - 1 + 1
