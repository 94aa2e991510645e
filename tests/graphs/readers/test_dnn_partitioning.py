import math

import pytest

from go_rl.core import FREE, OpKind
from go_rl.graphs.readers import load


def _node(number, **changes):
    fields = {
        "id": number,
        "name": f"MatMul{number}",
        "supportedOnFpga": True,
        "cpuLatency": 20.0,
        "fpgaLatency": 2.0,
        "isBackwardNode": 0,
        "size": 100,
        "unheard_of": [1],
    }
    return fields | changes


def _edge(source, target, **changes):
    return {"sourceId": source, "destId": target, "cost": 0.5, "size": 8} | changes


FILE = {
    "maxSizePerFPGA": 1000.0,
    "maxFPGAs": 3,
    "maxCPUs": 1,
    "nodes": [
        _node(7, colorClass=40, isBackwardNode=True, name="MatMul1_Grad/Transpose_0"),
        _node(5, cpuLatency=0, fpgaLatency=0, name="weight"),
        _node(3, cpuLatency=0, fpgaLatency=0.0, size=0),
        _node(9, colorClass=40, supportedOnFpga=0),
        _node(2, colorClass=41, name="node2grad"),
        _node(1, colorClass=None, name=None),
    ],
    "edges": [_edge(5, 9), _edge(3, 9), _edge(9, 7), _edge(9, 2, size=16), _edge(2, 1)],
}


def test_every_field_lands_where_it_belongs(loaded):
    graph = loaded(FILE)
    at = graph.index
    assert set(graph.names) == {7, 5, 3, 9, 2, 1}
    assert graph.op_type[at[7]] == "Transpose"
    assert [graph.op_type[at[n]] for n in (5, 3, 2, 1)] == [
        "constant", "input", "layer", "operator",
    ]  # fmt: skip
    assert graph.kind[at[5]] == OpKind.CONSTANT
    assert graph.kind[at[3]] == OpKind.INPUT
    assert graph.kind[at[9]] == OpKind.OTHER
    assert graph.seconds["accelerator"][at[7]] == pytest.approx(0.002)
    assert graph.seconds["cpu"][at[7]] == pytest.approx(0.02)
    assert math.isinf(graph.seconds["accelerator"][at[9]])
    assert graph.weight_bytes[at[7]] == 100
    assert not graph.output_bytes.any()
    assert graph.transfer_seconds[at[9]] == pytest.approx(0.0005)
    assert graph.transfer_seconds[at[7]] == 0
    assert graph.colocation[at[7]] == graph.colocation[at[9]] == 0
    assert graph.colocation[at[2]] == graph.colocation[at[1]] == FREE
    assert graph.is_backward.tolist() == [n == 7 for n in graph.names]
    assert graph.source[at[9]] == "nodes[3]"
    assert graph.edge_bytes[graph.senders == at[9]].tolist() == [16, 16]
    assert graph.meta["accelerators"] == 3
    assert graph.meta["cpus"] == 1
    assert graph.meta["memory_bytes"] == 1000
    assert graph.meta["training"] is True


def test_edges_that_leave_a_node_cost_the_same(refused):
    """What else is wrong is among the malformed inputs of `tests.counted`."""
    dearer = FILE | {"edges": [*FILE["edges"], _edge(9, 1, cost=0.25)]}
    refused(dearer, "as on the other edges that leave node 9")


def test_a_long_chain_needs_no_recursion(loaded):
    chain = FILE | {
        "nodes": [_node(i) for i in range(1_500)],
        "edges": [_edge(i, i + 1) for i in range(1_499)],
    }
    graph = loaded(chain)
    assert graph.num_nodes == 1_500
    assert graph.names[-1] == 1_499


def test_the_real_files(data_dir):
    files = sorted((data_dir / "dnn-partitioning" / "throughput").glob("*/*.json"))
    graphs = {f"{p.parent.name}/{p.stem}": load(p) for p in files}
    sizes = {name: (g.num_nodes, g.num_edges) for name, g in graphs.items()}
    assert sizes["operators/bert_L-12_training"] == (2012, 2751)
    assert sizes["layers/bert24_inference"] == (32, 55)
    # "Everything on one accelerator" of the authors' own program, in ms.
    one = graphs["layers/bert24_inference"].seconds["accelerator"].sum()
    assert one * 1000 == pytest.approx(92.406)
    one = graphs["operators/resnet50_inference"].seconds["accelerator"].sum()
    assert one * 1000 == pytest.approx(325.132, rel=1e-5)
