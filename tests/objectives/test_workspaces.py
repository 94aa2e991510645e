"""What every workspace offers: evaluation in batches, the reference plan, legal plans."""

from dataclasses import replace

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.small_rings import random_ring, ring_problem
from reference.step_problems import random_step, step_problem

from go_rl.core import Objective, Status
from go_rl.core.decisions import Decisions, Proposals
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.host.workspace import HostWorkspace
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.workspace import RingWorkspace

CHAIN = ring_problem(4, [(0, 1), (1, 2), (2, 3)], 2)


def workspace_of(objective: Objective, seed: int) -> Workspace:
    """Of a random problem."""
    if objective is Objective.RING:
        return RingWorkspace(random_ring(seed, "default"))
    if objective is Objective.MAKESPAN:
        return MakespanWorkspace(random_step(seed))
    return HostWorkspace(random_problem(seed, objective, 6, 3))


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(12))
def test_a_batch_is_evaluated_as_each_plan_is(objective, seed):
    workspace = workspace_of(objective, seed)
    nodes, devices = workspace.problem.graph.num_nodes, workspace.problem.hardware.num_devices
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(0, devices, (3, nodes)), axis=1).astype(np.int16)
    scored = workspace.evaluate(Decisions.stack([workspace.reference, Decisions(rows)]))
    assert scored.seconds[0] == pytest.approx(workspace.reference_seconds) or not scored.ok[0]
    assert 0 < workspace.reference_seconds < np.inf
    for i in range(4):
        detail = workspace.detail(scored.decisions, i)
        assert detail.status is STATUS_CODES[int(scored.status[i])]
        assert scored.seconds[i] == pytest.approx(detail.seconds)
        if i == 0 and detail.status.ok:
            assert workspace.bound <= detail.seconds * (1 + 1e-9)


def test_the_reference_of_a_ring_by_hand():
    """Four seconds on two chips; with pins that contradict each other, everything on one chip."""
    workspace = RingWorkspace(CHAIN)
    assert workspace.reference.device.tolist() == [[0, 0, 1, 1]]
    assert (workspace.reference_seconds, workspace.bound) == (2.0, 2.0)
    impossible = RingWorkspace(replace(CHAIN, fixed={0: 1, 3: 0}))
    assert impossible.reference.device.tolist() == [[0, 0, 0, 0]]
    assert impossible.reference_seconds == 4.0


def test_a_ring_keeps_what_is_legal_and_draws_the_rest():
    workspace = RingWorkspace(CHAIN)
    kept = workspace.legalize(Proposals(np.array([[0, 0, 1, 1], [0, 1, 1, 1]])))
    assert kept.decisions.device.tolist() == [[0, 0, 1, 1], [0, 1, 1, 1]]
    certain = np.full((1, 4, 2), -50.0)
    certain[0, range(4), [0, 0, 0, 1]] = 0.0
    drawn = workspace.legalize(Proposals(log_probs=certain), seed=3)
    assert drawn.decisions.device.tolist() == [[0, 0, 0, 1]]
    impossible = RingWorkspace(replace(CHAIN, fixed={0: 1, 3: 0}))
    found = impossible.legalize(Proposals(np.zeros((1, 4), np.int64)))
    assert STATUS_CODES[int(found.status[0])] is Status.INFEASIBLE
    assert found.detail


def test_a_makespan_keeps_pins_and_classes():
    problem = step_problem([1.0] * 3, [(0, 1, 1.0)], 2, fixed={0: 1}, colocation=[-1, 4, 4])
    workspace = MakespanWorkspace(problem)
    proposals = Proposals(np.array([[0, 1, 0]]), priority=np.array([[3, 2, 1]]))
    found = workspace.legalize(proposals)
    assert found.decisions.device.tolist() == [[1, 1, 1]]
    assert found.decisions.priority is not None
    assert found.decisions.priority.tolist() == [[3, 2, 1]]
    assert found.decisions.kernel_leader is None
    default = workspace.legalize(Proposals())
    assert default.decisions.device.tolist() == workspace.reference.device.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_assignments_end_in_plans_that_run(seed):
    """On a ring, and on a makespan: any possible device for each node in turn."""
    rng = np.random.default_rng(seed)
    for workspace in (
        RingWorkspace(replace(random_ring(seed, "strict"), memory=False)),
        MakespanWorkspace(random_step(seed, decisions=("placement",), memory_bytes=None)),
    ):
        assignment, nodes = workspace.assignment(), workspace.problem.graph.num_nodes
        for _ in range(2):
            assignment.reset()
            if assignment.infeasible is not None:
                break
            clash = ""
            for node in assignment.nodes.tolist():
                possible = np.flatnonzero(assignment.possible(node))
                if clash := assignment.assign(node, int(rng.choice(possible))):
                    assert "no legal chip is left" in clash
                    break
                assert assignment.device[node] >= 0
            else:
                zeros = np.zeros(nodes, np.int64)
                assert workspace.evaluate(assignment.decisions(zeros, zeros)).ok.all()
