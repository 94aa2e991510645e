"""Generated graphs: the same for a seed, of every kind, and none that the zoo holds out."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

import go_rl
from go_rl.core import OpGraph, ZooError, check_graph
from go_rl.graphs.zoo.generate.generated import GRAMMAR, generated_graph, generated_model
from go_rl.graphs.zoo.index import FOLDER, generated_name, generated_seed, read_index

QUICK = (0, 3, 4, 7)
"""Seeds of kinds that differ."""
RECORD = Path(__file__).parents[3] / "experiments" / "results" / "generated_graphs.csv"


@cache
def record() -> list[dict[str, str]]:
    with RECORD.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def made(seed: int) -> OpGraph:
    return generated_graph(seed)


@pytest.mark.parametrize(
    "seed",
    [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in range(len(GRAMMAR))],
)
def test_a_seed_gives_the_graph_of_the_record(seed):
    """One of each kind, with what the reader's checks ask."""
    graph, row = made(seed), record()[seed]
    check_graph(graph)
    assert graph.digest.startswith(row["digest"])
    assert (graph.num_nodes, row["kind"]) == (int(row["nodes"]), generated_model(seed).kind)
    assert graph.name == generated_name(seed)


def test_no_generated_graph_is_one_that_the_zoo_holds_out():
    """Their nodes, edges and FLOP are those of no graph of validation or test, nor of another seed
    more than by chance."""

    def key(nodes: float, edges: float, gflop: float) -> tuple[int, int, float]:
        return int(nodes), int(edges), round(gflop, 3)

    frozen = {key(e.nodes, e.edges, e.flops / 1e9) for e in read_index(FOLDER).values()}
    rows = record()
    mine = {key(*(float(row[name]) for name in ("nodes", "edges", "gflop"))) for row in rows}
    assert not frozen & mine
    assert len(rows) >= 1000
    assert len({row["digest"] for row in rows}) > 0.98 * len(rows)


def test_generated_graphs_are_loaded_by_name():
    assert go_rl.load(f"zoo:{generated_name(7)}").digest == made(7).digest
    assert generated_seed("resnet50") is None
    assert generated_seed("generated-2-x") is None


@pytest.mark.parametrize("seed", [-1, 2**31, True])
def test_a_bad_seed_is_one_clear_error(seed):
    with pytest.raises(ZooError, match="a whole number 0 to 2"):
        generated_graph(seed)
