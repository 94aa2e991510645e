"""Piper's profiles: layers as they run on one device, the other choices named."""

from __future__ import annotations

import copy

import pytest


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
def test_what_is_wrong_is_named(refused, change, message):
    document = copy.deepcopy(DOCUMENT)
    change(document)
    refused(document, message)
