"""Profiles of DOPPLER, PipeDream and Piper: lines, counts, and the line of each error."""

import copy

import pytest
from small_graphs import edges_of

from go_rl.core import FREE
from go_rl.graphs.readers import load

GRAPH = """\
7
0, 1, 5,
0, 0, 1, 2,
1, 2, 3, 3,
30000000000,40000000000,einsummable
20000000000,10000000000,formation
20000000000,10000000000,select
10000000000,80000000000
"""
"""Three inputs, then a diamond: 3 s, twice 2 s, and 1 s."""


def test_vertices_and_edges(loaded):
    graph = loaded(GRAPH)
    assert graph.names == (0, 1, 2, 3)
    assert graph.op_type == ("einsummable", "formation", "select", "operator")
    assert graph.seconds["accelerator"].tolist() == pytest.approx([3.0, 2.0, 2.0, 1.0])
    assert graph.transfer_seconds is not None
    assert graph.transfer_seconds.tolist() == pytest.approx([4.0, 1.0, 1.0, 0.0])
    assert graph.output_bytes.tolist() == [4e10, 1e10, 1e10, 8e10]
    assert edges_of(graph) == {
        (0, 1): (4e10, 0), (0, 2): (4e10, 0), (1, 3): (1e10, 0), (2, 3): (1e10, 0),
    }  # fmt: skip
    assert graph.is_output.tolist() == [False, False, False, True]
    assert graph.meta["inputs"] == 3
    assert "none were measured" in graph.meta["notes"][0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7\n", "8\n", r"1: 8 vertices, but 3 inputs on line 2 and 4 lines from line 5 on"),
        ("0, 1, 5,", "0, 1, 1,", "2: an input is named twice"),
        ("0, 1, 5,", "0, 1, 7,", "2: input 7, and there are 7 vertices"),
        ("0, 0, 1, 2,", "0, 0, 1, 4,", "3: vertex 4; without inputs they are 0 to 3"),
        ("1, 2, 3, 3,", "1, 2, 3,", "4: 3 receivers, and 4 senders on line 3"),
        ("1, 2, 3, 3,", "1, 2, 3, x,", "4: 'x' among the receivers"),
        ("1, 2, 3, 3,", "1, 2,, 3,", "4: '' among the receivers"),
        ("20000000000,10000000000,f", "20000000000;10000000000,f", "6: .* is no vertex"),
        ("20000000000,10000000000,f", "-2,10000000000,f", "6: .* is no vertex"),
        ("20000000000,10000000000,f", "\n20000000000,10000000000,f", "6: '' is no vertex"),
        ("0, 0, 1, 2,\n1, 2, 3, 3,", "0, 0, 1, 3,\n1, 2, 3, 1,", "cycle"),
        ("0, 0, 1, 2,\n1, 2, 3, 3,", "0, 0, 1, 3,\n1, 2, 3, 3,", "node 3 feeds itself"),
    ],
)
def test_what_is_wrong_is_named(refused, old, new, message):
    assert old in GRAPH
    refused(GRAPH.replace(old, new), message)


PROFILE = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"
TEXT = "\n".join(
    [
        "node1 -- Input0 -- " + PROFILE.format("0.000", "0.000", "0.0", "0.000"),
        "node2 -- Conv2d(3, 64, stride=(1, 1)) -- " + PROFILE.format("1.5", "3.0", "100.0", "40.0"),
        "node3 -- LSTM(2048, 1024) -- "
        + PROFILE.format("2.0", "4.0", "[30.0; 1.0; 1.0]", "8.0")
        + ", stage_id=1",
        "node4 -- Add(inplace) -- " + PROFILE.format("0.0", "0.5", "16.0", "0.0"),
        "\tnode1 -- node2",
        "\tnode2 -- node3",
        "\tnode2 -- node4",
        "\tnode3 -- node4",
        "",
    ]
)


def test_the_training_graph_mirrors_the_forward_one(loaded):
    graph = loaded(TEXT, training=True)
    edges = {ends: size for ends, (size, _) in edges_of(graph).items()}
    assert set(graph.names) == {
        "node1", "node2", "node3", "node4",
        "node2_backward", "node3_backward", "node4_backward",
    }  # fmt: skip
    assert edges[("node4_backward", "node3_backward")] == 32
    assert edges[("node4_backward", "node2_backward")] == 100
    assert edges[("node3", "node3_backward")] == 32
    assert ("node2_backward", "node1") not in edges
    at = graph.index
    assert graph.colocation[at["node3"]] == graph.colocation[at["node3_backward"]] != FREE
    assert graph.seconds["accelerator"][at["node3_backward"]] == pytest.approx(0.004)
    assert graph.weight_bytes.sum() == 48
    assert graph.output_bytes[at["node4_backward"]] == 132
    assert graph.is_backward.sum() == 3
    out = graph.edge_output[graph.senders == at["node4_backward"]]
    assert sorted(out.tolist()) == [0, 1], "two different gradients leave the addition"


def test_the_real_files(data_dir):
    sizes = {p.stem: load(p).num_nodes for p in (data_dir / "pipedream").glob("[a-z]*.txt")}
    assert sizes["alexnet"] == 23
    assert sizes["nasnetamobile"] == 921
    assert load(data_dir / "pipedream" / "gnmt.txt", training=True).is_backward.sum() == 45


def way(name, milliseconds, in_flight=4.0):
    return {
        "id": name, "timePerSample": milliseconds, "parameterSize": 8.0,
        "memoryUsageA": in_flight, "memoryUsageB": 16.0, "syncTimeFw": {}, "syncTimeBw": {},
    }  # fmt: skip


def layer(number, milliseconds):
    alone = [way("vanilla", milliseconds), way("activation recomp", milliseconds + 1, 1.0)]
    return {"id": number, "name": f"node{number}",
            "TMPCs": {"1": alone, "2": [way("vanilla", milliseconds / 2)]}}  # fmt: skip


DOCUMENT = {
    "maxDevices": 2, "maxMemoryPerDevice": 1e9, "bandwidth": 1e6, "mbsInBatch": 8,
    "nodes": [layer(3, 2.0), layer(1, 4.0), layer(2, 6.0)],
    "edges": [
        {"sourceId": 3, "destId": 1, "communicationCost": 1000.0},
        {"sourceId": 3, "destId": 2, "communicationCost": 3000.0},
        {"sourceId": 1, "destId": 2, "communicationCost": 500.0},
    ],
}  # fmt: skip


def test_layers_run_as_they_are_on_one_device(loaded):
    graph = loaded(DOCUMENT)
    assert graph.names == (3, 1, 2)
    assert graph.op_type == ("node3", "node1", "node2")
    assert graph.seconds["accelerator"].tolist() == pytest.approx([2e-3, 4e-3, 6e-3])
    assert graph.weight_bytes.tolist() == [20.0] * 3
    assert sorted(graph.edge_bytes.tolist()) == [500.0, 1000.0, 3000.0]
    assert graph.transfer_seconds.tolist() == pytest.approx([3e-3, 5e-4, 0.0])
    assert graph.is_output.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["nodes"][0]["TMPCs"].pop("1"), r"nodes\[0\] .*no way 'vanilla' .*has: none"),
        (lambda d: d["nodes"][0]["TMPCs"]["1"].pop(0), "degree 1 has: 'activation recomp'"),
        (lambda d: d["nodes"][0]["TMPCs"].update({"two": []}), "keyed by whole numbers >= 1"),
        (lambda d: d["nodes"][1].update(TMPCs=[]), "TMPCs is .* lists of ways"),
        (lambda d: d["nodes"][1]["TMPCs"].update({"1": 3}), "must be a list of ways"),
        (lambda d: d["nodes"][1]["TMPCs"]["1"][0].update(timePerSample=-1), "timePerSample"),
        (lambda d: d.update(bandwidth=0), "bandwidth is 0"),
        (lambda d: d["edges"][0].update(destId=9), "the id of a node in the file"),
        (lambda d: d["edges"].append(dict(d["edges"][2], sourceId=2, destId=1)), "cycle"),
    ],
)
def test_what_is_wrong_in_layers_is_named(refused, change, message):
    document = copy.deepcopy(DOCUMENT)
    change(document)
    refused(document, message)
