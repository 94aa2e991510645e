"""Plans of whole layers, against every way to cut a short chain."""

from itertools import combinations, pairwise

import pytest
from layered_graphs import llama, posed
from small_problems import build_problem, ring_of

import go_rl
from go_rl.core import Budget, SearchError, SplitError
from go_rl.plans.splits import judge, layer_cuts, read_split
from go_rl.plans.splits.layer_cuts import LayerCuts

BUDGET = Budget(samples=100_000)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return llama(tmp_path_factory.mktemp("llama"), layers=6)


def every_partition(layers, stages):
    """Strings of vLLM for every way to cut so many layers into at most so many stages."""
    for several in range(1, stages + 1):
        for cuts in combinations(range(1, layers), several - 1):
            ends = (0, *cuts, layers)
            yield ",".join(str(b - a) for a, b in pairwise(ends))


@pytest.mark.parametrize(
    ("hardware", "objective"),
    [("ring4", "ring"), ("p100x2", "latency")],
)
def test_the_best_partition_of_layers_is_found(hardware, objective, graph):
    problem = posed(graph, hardware, objective)
    found = LayerCuts("vllm").optimize(problem, BUDGET, 0)
    values = [
        judge(read_split(text, problem.graph, problem.hardware), problem, moves=False).plan.value
        for text in every_partition(6, problem.hardware.num_devices)
    ]
    assert found.value == pytest.approx(min(values))


def test_moving_cuts_finds_it_too_where_not_all_are_tried(graph, monkeypatch):
    problem = posed(graph, "ring4")
    best = LayerCuts("megatron").optimize(problem, BUDGET, 0).value
    monkeypatch.setattr(layer_cuts, "ALL_CUTS", 1)
    assert LayerCuts("megatron").optimize(problem, BUDGET, 0).value == pytest.approx(best)


def test_the_user_asks_for_layers_by_name(graph):
    for tool, objective in (("torchtitan", "max-load"), ("hf", "makespan")):  # no pipeline
        found = go_rl.optimize(graph, "p100x2", for_=tool, samples=1000, cost="analytical")
        assert found.best.optimizer == f"for {tool}"
        assert str(found.problem.objective) == objective
    with pytest.raises(SearchError, match="no tool 'vlm'; did you mean 'vllm'"):
        go_rl.optimize(graph, "p100x2", for_="vlm")
    with pytest.raises(SearchError, match="--for vllm has a search of its own; leave out method"):
        go_rl.optimize(graph, "p100x2", for_="vllm", method="metis")


def test_a_graph_without_layers_is_refused():
    problem = build_problem("ab", [("a", "b")], ring_of(2))
    with pytest.raises(SplitError, match="--for vllm counts layers, and the node names of 'small'"):
        LayerCuts("vllm").optimize(problem, BUDGET, 0)


def test_a_ring_whose_memory_no_partition_fits_is_a_failure_with_a_sentence(graph):
    small = posed(graph, "ring4").hardware.to_json()
    for device in small["devices"]:
        device["memory_bytes"] = 10e3
    hardware = go_rl.core.Hardware.from_json(small)
    found = go_rl.optimize(graph, hardware, for_="vllm", samples=10, cost="analytical")
    assert not found.best.evaluation.status.ok
    assert "no split into whole layers" in found.best.evaluation.detail
