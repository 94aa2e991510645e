"""Best-known plans: what is frozen is what is read, and only training problems teach."""

from __future__ import annotations

import numpy as np
import pytest

from go_rl.core import ZooError
from go_rl.core.decisions import Decisions
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.best_known import (
    BestEntry,
    best_entries,
    best_known,
    decisions_digest,
    write_best,
)
from go_rl.graphs.zoo.index import zoo_entry
from go_rl.graphs.zoo.problems import zoo_problem
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.workspace import RingWorkspace


def _entry(name, arrays):
    return BestEntry(
        name, "test", "f", "g", 2.0, 1.0, "annealing", 0, 3.0, decisions_digest(arrays)
    )


@pytest.fixture
def folder(tmp_path):
    device = {"device": np.array([0, 1], np.int16)}
    full = {**device, "priority": np.array([3, 1], np.int32)}
    arrays = {
        "a/device": device["device"],
        "b/device": device["device"],
        "b/priority": full["priority"],
    }
    write_best([_entry("b", full), _entry("a", device)], arrays, tmp_path)
    return tmp_path


def test_what_was_written_is_read(folder):
    assert list(best_entries(folder)) == ["a", "b"]
    plan = best_known("b", folder)
    assert plan.priority is not None
    assert (plan.device.tolist(), plan.priority.tolist()) == ([0, 1], [3, 1])
    assert plan.fusion_group is None
    assert plan.entry.gap == 1.0


def test_a_changed_index_or_plan_is_refused(folder):
    index = folder / "zoo-best-2.json"
    index.write_text(index.read_text().replace('"seconds": 2.0', '"seconds": 1.9', 1))
    with pytest.raises(ZooError, match="was changed after it was frozen"):
        best_known("a", folder)


def test_frozen_plans_are_for_the_graphs_of_the_zoo():
    for name, entry in best_entries().items():
        problem = zoo_problem(name)
        assert entry.graph_digest == zoo_entry(problem.graph).digest
        assert (entry.part, entry.family) == (problem.part, problem.family)
        assert 0 < entry.bound <= entry.seconds


@pytest.mark.parametrize("objective", ["ring", "makespan"])
def test_a_frozen_plan_takes_the_seconds_it_says(objective):
    names = [n for n in best_entries() if zoo_problem(n).objective == objective]
    name = min(names, key=lambda n: zoo_entry(zoo_problem(n).graph).nodes)
    plan, problem = best_known(name), priced_problem(zoo_problem(name))
    workspace = (RingWorkspace if objective == "ring" else MakespanWorkspace)(problem)
    decisions = Decisions(
        plan.device[None],
        None if plan.priority is None else plan.priority[None].astype(np.int64),
        None if plan.fusion_group is None else plan.fusion_group[None].astype(np.int64),
    )
    assert workspace.evaluate(decisions).seconds[0] == pytest.approx(plan.entry.seconds, rel=1e-9)
