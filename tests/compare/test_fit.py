"""Memory before time: against all placements, when nothing fits, and what is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reference.step_problems import step_problem

import go_rl
from go_rl.api.options import FineTuneOptions, OptimizeOptions, options_from
from go_rl.compare.portfolio import run_fit
from go_rl.compare.portfolio.fit import NAME, fullest, least_memory
from go_rl.core import Budget, Device, OpKind, Problem, ProblemError, SearchError, Status
from go_rl.core.errors import name_difference
from go_rl.core.objective import Objective
from go_rl.objectives.methods import Exhaustive
from go_rl.verify.check_plan import check_plan
from go_rl.verify.makespan_value import replayed

SMALL = Budget(samples=400)


def random_tree(seed: int, nodes: int = 6, room: float = 100.0) -> Problem:
    """Operators with weights and results on three unequal devices; only the placement is open."""
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(v)), v, float(rng.integers(1, 6))) for v in range(1, nodes)]
    kinds = [Device(f"kind{k}", 1.0, room * (1 + k), 1.0) for k in range(2)]
    seconds = [rng.integers(1, 9, nodes).astype(float).tolist() for _ in kinds]
    return step_problem(
        seconds, edges, 3, chips=[kinds[0], kinds[1], kinds[1]], memory=True,
        weights=rng.integers(1, 9, nodes).astype(float).tolist(),
        kinds=[OpKind.MATMUL] * nodes, decisions=("placement",),
    )  # fmt: skip


def all_placements(problem: Problem) -> list[tuple[float, float]]:
    """Share of the fullest device and seconds of every placement, by the checker's replay."""
    room = [device.memory_bytes for device in problem.hardware.devices]
    found = []
    for device in product(range(len(room)), repeat=problem.graph.num_nodes):
        step = replayed(problem, np.array(device), None, None)
        share = max(peak / size for peak, size in zip(step.peak_bytes, room, strict=True))
        found.append((share, step.seconds))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_small_problems_get_the_least_memory_and_then_the_least_time(seed):
    problem = random_tree(seed)
    every = all_placements(problem)
    least = min(share for share, _ in every)
    fastest = min(seconds for share, seconds in every if share <= least * (1 + 1e-6))
    found = least_memory(problem, Budget(samples=100_000), seed)
    assert found.share == pytest.approx(least)
    assert found.proved <= least
    result = run_fit(problem, "composed", Budget(samples=20_000), seed, extra=(Exhaustive(),))
    assert fullest(problem, result.best) == pytest.approx(least)
    assert result.best.value == pytest.approx(fastest)
    assert check_plan(result.best, problem).ok
    assert result.best.notes[-1].startswith("Memory first: the fullest device, ")


def test_when_nothing_fits_the_tensor_that_makes_the_difference_is_named():
    edges = [(0, 1, 6.0, 0), (0, 2, 4.0, 1), (1, 2, 1.0)]
    problem = step_problem(
        [1.0] * 3, edges, 2, memory_bytes=10.5, kinds=[OpKind.MATMUL] * 3,
        decisions=("placement",),
    )  # fmt: skip
    tight = run_fit(problem, "composed", SMALL, 0).best
    assert tight.evaluation.status is Status.OK
    assert tight.evaluation.peak_bytes.max() == 10.0
    devices = tuple(replace(d, memory_bytes=9.5) for d in problem.hardware.devices)
    smaller = replace(problem, hardware=replace(problem.hardware, devices=devices))
    failed = run_fit(smaller, "composed", SMALL, 0)
    assert failed.best.optimizer == NAME
    assert failed.best.evaluation.status is Status.OUT_OF_MEMORY
    assert "needs 10 bytes" in failed.best.evaluation.detail
    assert "; the difference is result of 0: without its 4 bytes" in failed.best.evaluation.detail


@pytest.mark.parametrize("edges", [[], [(0, 1, 0.0)], [(0, 1, 3.0)]])
def test_a_graph_with_little_or_no_memory_has_a_plan(edges):
    problem = step_problem([1.0] * (1 + len(edges)), edges, 2, memory_bytes=10.0)
    best = run_fit(problem, "composed", Budget(samples=10), 0).best
    assert check_plan(best, problem).ok
    assert best.evaluation.peak_bytes.max() == sum(size for *_, size in edges)


@pytest.mark.parametrize(
    ("things", "excess", "words"),
    [
        ([("a", 5.0), ("b", 3.0), ("c", 9.0)], 4.0, "the difference is a: without its 5 bytes"),
        ([("a", 5.0), ("b", 3.0)], 7.0, "difference of 7 bytes; the 2 largest are"),
        ([("a", 5.0)], 5.0, "the difference is a"),
        ([], 1.0, "the 0 largest are"),
    ],
)
def test_what_makes_a_difference(things, excess, words):
    assert words in name_difference(things, excess)


def test_fit_is_for_the_makespan_with_memory():
    problem = random_tree(0)
    with pytest.raises(ProblemError, match="memory that is checked"):
        run_fit(replace(problem, memory=False))
    with pytest.raises(SearchError, match="leave out --memory off"):
        OptimizeOptions(objective="fit", memory=False)
    with pytest.raises(SearchError, match="must be one of ring, makespan, not 'fit'"):
        options_from(FineTuneOptions, {"objective": "fit"}, "finetune")
    with pytest.raises(ProblemError, match="ring links"):
        go_rl.optimize("zoo:ncf", "ring4", objective="fit")
    assert go_rl.methods("fit") == go_rl.methods(Objective.MAKESPAN)
