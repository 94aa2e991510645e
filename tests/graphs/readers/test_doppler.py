"""DOPPLER's text graphs: lines, counts, and the line of each error."""

from __future__ import annotations

import pytest

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
    edges = zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True)
    assert list(zip(edges, graph.edge_bytes.tolist(), strict=True)) == [
        ((0, 1), 4e10), ((0, 2), 4e10), ((1, 3), 1e10), ((2, 3), 1e10),
    ]  # fmt: skip
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
