"""What is said of a split, against sums by hand."""

import numpy as np
import pytest
from layered_graphs import llama, posed, small_ring, split_of

import go_rl
from go_rl.core import SplitError, Status
from go_rl.plans.splits import judge
from go_rl.report.split_summary import split_lines
from go_rl.verify.check_plan import check_plan


def judged(problem, text, **options):
    return judge(split_of(problem, text), problem, **options)


def slowest_stage(problem, device):
    """T_max of a ring by hand: chips by the sum of their nodes, links by the tensors that cross."""
    graph, links = problem.graph, problem.hardware.links
    chips = np.bincount(device, problem.work, problem.hardware.num_devices)
    tensors = {}
    for u, v, size in zip(graph.senders, graph.receivers, problem.edge_bytes, strict=True):
        for link in range(device[u], device[v]):
            tensors.setdefault(link, {})[int(u)] = size
    wires = [sum(held.values()) / links.bandwidth + links.latency_seconds
             for held in tensors.values()]  # fmt: skip
    return max([*chips, *wires])


@pytest.mark.parametrize("text", ["1,1,1,1", "2,2", "1,2,1", "Et|t|tt|L", "-ts 1,1,1,2"])
def test_a_ring_counts_the_slowest_chip_or_link(text, problem):
    found = judged(problem, text)
    assert found.ok
    assert found.plan.value == pytest.approx(slowest_stage(problem, found.plan.device), rel=1e-9)
    assert found.bound <= found.plan.value
    assert check_plan(found.plan, problem).value == pytest.approx(found.plan.value)


def test_the_best_move_of_a_layer_is_that_of_brute_force(problem):
    found = judged(problem, "3,1")
    values = {counts: judged(problem, counts, moves=False).plan.value for counts in ("2,2", "4")}
    best = min(values, key=lambda counts: values[counts])
    assert found.move is not None
    assert (best, found.move.part) == ("2,2", "model.layers.2")
    assert (found.move.source, found.move.target) == (0, 1)
    assert found.move.seconds == pytest.approx(values["2,2"])
    assert found.move.gain == pytest.approx(found.plan.value / values["2,2"])


def test_a_split_that_goes_back_names_the_rule_and_the_nearest_legal_plan(graph):
    problem = posed(graph, "ring2")
    found = judged(problem, '{"model": 1, "model/layers.0/*": 0, "lm_head": 1}')
    assert not found.ok
    assert found.verdict.status is Status.ILLEGAL
    assert {v.rule for v in found.verdict.violations} == {"acyclic"}
    assert "'model/embed_tokens' (chip 1)" in found.verdict.violations[0].message
    assert found.repaired is not None
    assert check_plan(found.repaired, problem).ok
    assert found.move is not None  # of the embedding
    assert found.move.gain == float("inf")


def test_memory_that_is_too_small_is_named(graph):
    found = go_rl.check_split("4", graph, small_ring(40e3), cost="analytical")
    assert found.verdict.status is Status.OUT_OF_MEMORY
    assert found.verdict.violations[0].rule == "weights"


@pytest.mark.parametrize("objective", ["makespan", "max-load", "latency"])
def test_other_objectives_are_priced_as_optimize_prices_them(objective, graph):
    found = go_rl.check_split("2,2", graph, "p100x2", objective=objective, cost="analytical")
    assert found.ok
    assert go_rl.check(found.plan, found.problem).value == pytest.approx(found.plan.value)


def test_a_split_of_another_graph_is_refused(problem, tmp_path):
    other = posed(llama(tmp_path, layers=2), "ring4")
    with pytest.raises(SplitError, match="the split has 68 nodes, 'tiny' 36"):
        judge(split_of(problem, "1,3"), other)


def test_the_sentences_name_verdict_bound_cause_and_move(problem):
    lines = split_lines(judged(problem, "3,1"))
    assert lines[0] == "legal: split in notation vllm, tiny on ring4, objective ring, rules default"
    assert "an iteration, at most" in lines[1]
    assert lines[2].startswith("busiest: chip 0, 100 % of the iteration")
    assert lines[3].startswith("best single move: model.layers.2 from chip 0 to 1, which is 2,2, ")
    wrong = split_lines(judged(posed(problem.graph, "ring2"), '{"lm_head": 0, "*": 1}'))
    assert wrong[0].startswith("illegal: split in notation json")
    assert any(line.startswith("acyclic: edge 'model/norm'") for line in wrong)
