"""How much longer an operator may take."""

import numpy as np
import pytest
from page_parts import named_graph, planned, problem_on, zoo_plan

from go_rl.core import Objective, Status
from go_rl.objectives.makespan.simulate.timeline import MemoryUse, Slice, Timeline, Track
from go_rl.report.page.timetable import slack_of
from go_rl.report.timeline.plan_timeline import plan_timeline


def test_by_hand():
    """a (1 s) on device 0 is sent in 1 s to c (2 s) on device 1; b (1 s) runs there before, and d
    (1 s) on device 0 whenever."""
    problem = problem_on(named_graph("a", "b", "c", "d"), "p100x2", Objective.MAKESPAN)
    plan = planned(problem, [0, 1, 1, 0])
    tracks = (Track(0, "stream"), Track(1, "stream"), Track(0, "0 → 1", 1))

    def piece(name: str, start: float, seconds: float, track: int, kind: str = "other") -> Slice:
        return Slice(name, start, seconds, track, {"kind": kind, "nodes": [name]})

    slices = (
        piece("a", 0.0, 1.0, 0), piece("b", 0.0, 1.0, 1), piece("a", 1.0, 1.0, 2, "transfer"),
        piece("d", 1.0, 1.0, 0), piece("c", 2.0, 2.0, 1),
    )  # fmt: skip
    memory = MemoryUse(np.zeros(1), np.zeros(1))
    timeline = Timeline("net", "toys", Status.OK, 4.0, ("toy",) * 2, tracks, slices,
                        ((0, 2), (2, 4)), (memory,) * 2, np.zeros(2))  # fmt: skip
    assert slack_of(problem, plan, timeline) == pytest.approx([0.0, 1.0, 0.0, 2.0])


def test_some_operator_of_a_replayed_plan_has_none():
    problem, plan = zoo_plan("resnet18", "p100x4", Objective.MAKESPAN)
    slack = slack_of(problem, plan, plan_timeline(problem, plan))
    runs = ~problem.graph.is_fed
    assert np.nanmin(slack[runs]) == pytest.approx(0.0, abs=1e-12)
    assert np.nanmax(slack) <= plan.value
    assert np.isnan(slack[problem.graph.is_fed]).all()
