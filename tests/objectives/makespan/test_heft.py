"""HEFT: the example of its paper, idle times, queues on links, priorities."""

import numpy as np
import pytest
from reference.step_problems import random_step, step_problem

from go_rl.core import Problem
from go_rl.objectives.makespan.methods.heft import heft
from go_rl.objectives.makespan.workspace import makespan_workspace

PAPER_SECONDS = (
    [14, 13, 11, 13, 12, 13, 7, 5, 18, 21],
    [16, 19, 13, 8, 13, 16, 15, 11, 12, 7],
    [9, 18, 19, 17, 10, 9, 11, 14, 20, 16],
)
PAPER_EDGES = (
    (0, 1, 18), (0, 2, 12), (0, 3, 9), (0, 4, 11), (0, 5, 14), (1, 7, 19), (1, 8, 16), (2, 6, 23),
    (3, 7, 27), (3, 8, 23), (4, 8, 13), (5, 7, 15), (6, 9, 17), (7, 9, 11), (8, 9, 13),
)  # fmt: skip
"""Figure 2 of Topcuoglu et al. 2002: ten tasks, three processors."""


def paper_example(**options) -> Problem:
    """Each edge of the paper is a tensor of its own."""
    count = [0] * 10
    edges = []
    for u, v, size in PAPER_EDGES:
        edges.append((u, v, float(size), count[u]))
        count[u] += 1
    return step_problem(PAPER_SECONDS, edges, 3, **options)


def test_heft_is_that_of_the_paper():
    """Table 3 (upward ranks) and figure 3(a): a schedule of 80."""
    schedule = heft(makespan_workspace(paper_example()))
    ranks = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    assert schedule.rank == pytest.approx(ranks, abs=1e-3)
    assert (schedule.device + 1).tolist() == [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]
    assert schedule.finish.tolist() == [9, 40, 28, 26, 38, 42, 49, 62, 68, 80]


@pytest.mark.parametrize("seed", range(6))
def test_heft_on_its_own_terms_is_a_schedule(seed):
    """Tasks wait for operands, and no device is busier than there is time."""
    problem = random_step(seed, engines=(), memory_bytes=None)
    workspace = makespan_workspace(problem)
    for queues in (False, True):
        schedule, graph = heft(workspace, queues), problem.graph
        fed = workspace.pricer.arrays.fed
        lasting = problem.seconds[problem.device_kind[schedule.device], np.arange(graph.num_nodes)]
        lasting = np.where(fed, 0.0, lasting + workspace.pricer.arrays.gap)
        if not np.isfinite(lasting).all():
            continue
        start = schedule.finish - lasting
        size = _tensor_bytes(problem)
        away = schedule.device[graph.senders] != schedule.device[graph.receivers]
        links = problem.hardware.links
        sent = np.where(away, size / links.bandwidth + links.latency_seconds, 0.0)
        real = ~fed[graph.senders]
        arrived = (schedule.finish[graph.senders] + sent)[real]
        assert np.all(start[graph.receivers[real]] >= arrived - 1e-9)
        for device in range(workspace.num_devices):
            here = np.flatnonzero((schedule.device == device) & (lasting > 0))
            here = here[np.argsort(start[here], kind="stable")]
            assert np.all(start[here][1:] >= schedule.finish[here][:-1] - 1e-9)


def _tensor_bytes(problem: Problem) -> np.ndarray:
    """[E] bytes of the tensor on each edge: that of its largest edge."""
    graph = problem.graph
    tensors = list(zip(graph.senders.tolist(), graph.edge_output.tolist(), strict=True))
    largest: dict[tuple[int, int], float] = {}
    for tensor, size in zip(tensors, problem.edge_bytes.tolist(), strict=True):
        largest[tensor] = max(largest.get(tensor, 0.0), size)
    return np.array([largest[t] for t in tensors], np.float64)
