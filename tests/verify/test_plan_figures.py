"""The checker's own figures of a plan, by hand, and what it says of false ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reference.step_problems import step_problem

from go_rl.core import Objective
from go_rl.core.plan_json.document import PER_DEVICE, PER_LINK
from go_rl.verify.check_plan import check_plan
from go_rl.verify.figures import plan_figures
from go_rl.verify.makespan_value import replayed

ARRAYS = (*PER_DEVICE, *PER_LINK)


@pytest.fixture
def ring(problem_of, small_ring):
    """A chain of three with tied weights and a copied mask, on links of 100 B/s."""
    per_node = {
        "seconds": {"m": 1e-4}, "weights": {"a": 8, "b": 8, "c": 5}, "tied": {
            "m": -1, "a": 0, "b": 0, "c": -1,
        },
    }  # fmt: skip
    edges = [("m", "a", 1.0), ("m", "c", 1.0), ("a", "b", 10.0), ("b", "c", 20.0)]
    return problem_of("mabc", edges, small_ring(3, latency=0.5), "default", per_node)


def of_node(problem, letter: str) -> int:
    return problem.graph.index[letter]


def test_a_ring_by_hand(ring):
    device = np.array([{"m": 0, "a": 0, "b": 0, "c": 1}[str(n)] for n in ring.graph.names])
    ring = replace(ring, streamed_bytes=np.where(np.array(ring.graph.names) == "m", 7.0, 0.0))
    found = plan_figures(ring, device, {of_node(ring, "m"): (1,)}, None)
    assert found.device_seconds == pytest.approx([2.0001, 1.0001, 0.0])
    assert found.link_bytes == [20.0, 0.0, 0.0]
    assert found.link_seconds == [0.2 + 0.5, 0.0, 0.0]
    assert found.weight_bytes == [8.0, 5.0, 0.0]
    assert found.streamed_bytes == [7.0, 7.0, 0.0]
    assert found.peak_bytes is None


def test_max_load_by_hand(problem_of, small_boxes):
    problem = problem_of(
        "ab", [("a", "b")], small_boxes(2, 0), objective=Objective.MAX_LOAD,
        per_node={"transfers": {"a": 0.25}, "weights": {"b": 3}},
    )  # fmt: skip
    found = plan_figures(problem, np.array([0, 1]), {}, None)
    assert (found.device_seconds, found.link_seconds) == ([1.25, 1.25], [])
    assert (found.link_bytes, found.weight_bytes) == ([], [0.0, 3.0])


def test_makespan_by_hand():
    """0 (1 s) feeds 1 (4 s) and, on the other device, 2 (2 s): 2 bytes on a link of 1 B/s."""
    problem = step_problem([1.0, 4.0, 2.0], [(0, 1, 2.0), (0, 2, 2.0)], 2)
    device = np.array([0, 0, 1], np.int16)
    found = plan_figures(problem, device, {}, replayed(problem, device, None, None))
    assert found.device_seconds == [5.0, 2.0]
    assert found.link_bytes == [0.0, 2.0, 0.0, 0.0]
    assert found.link_seconds == [0.0, 2.0, 0.0, 0.0]
    assert found.peak_bytes == [2.0, 2.0]


def changed(plan: Any, **arrays: Any) -> Any:
    told = {name: np.array(values, np.float64) for name, values in arrays.items()}
    return replace(plan, evaluation=replace(plan.evaluation, **told))


@pytest.fixture
def honest(ring, plan_of):
    plan = plan_of(ring, [0, 0, 0, 1], value=2.0001, bound=0.0)
    assert check_plan(plan, ring).ok
    return plan


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, 150.0])
def test_every_false_figure_is_found(name, wrong, ring, honest):
    figures = getattr(honest.evaluation, name).copy()
    figures[1] = wrong
    verdict = check_plan(changed(honest, **{name: figures}), ring)
    assert [v.rule for v in verdict.violations] == ["evaluation"]
    assert verdict.violations[0].message.startswith(f"{name}[1] is ")


@pytest.mark.parametrize("names", [PER_DEVICE, PER_LINK])
def test_figures_of_another_number_of_devices_are_found(names, ring, honest):
    shorter = {name: getattr(honest.evaluation, name)[:-1] for name in names}
    verdict = check_plan(changed(honest, **shorter), ring)
    for name in names:
        assert f"{name} has 2 entries; it must have 3" in verdict.sentence


def test_peaks_are_at_least_the_weights_and_at_most_the_memory(ring, honest):
    for peak, ok in (([8, 5, 0], True), ([100, 100, 100], True), ([7.9, 5, 0], False)):
        assert check_plan(changed(honest, peak_bytes=peak), ring).ok is ok
    assert not check_plan(changed(honest, peak_bytes=[101, 5, 0]), ring).ok
    loose = replace(ring, memory=False)
    plan = replace(changed(honest, peak_bytes=[101, 5, 0]), memory=False)
    assert check_plan(plan, loose).ok
