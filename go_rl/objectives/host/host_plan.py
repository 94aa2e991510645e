"""How max-load and latency optimizers hand back what they found."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int16

from go_rl.core import Objective, Plan, Problem, Progress, Status, plan_for
from go_rl.core.evaluation import failed
from go_rl.objectives.host.hypergraph import Contraction
from go_rl.simulate.host.latency import evaluate_latency
from go_rl.simulate.host.max_load import evaluate_max_load


def finished_plan(
    problem: Problem,
    device: Int16[np.ndarray, "N"],
    bound: float,
    name: str,
    seed: int,
    progress: Progress,
) -> Plan:
    """Return the plan of ``device`` [N], priced afresh; the curve ends at that price."""
    price = evaluate_latency if problem.objective is Objective.LATENCY else evaluate_max_load
    evaluation = price(problem, device.astype(np.int16))
    return plan_for(
        problem,
        device=device.astype(np.int16),
        replicas={},
        evaluation=evaluation,
        bound=min(bound, evaluation.seconds_per_step),
        optimizer=name,
        seed=seed,
        samples=progress.samples,
        wall_seconds=progress.wall_seconds,
        curve=tuple(progress.curve),
    )


def failed_plan(
    problem: Problem, contraction: Contraction, name: str, seed: int, progress: Progress
) -> Plan:
    """Return a plan whose status says why there is none: proved impossible, or given up."""
    lost = np.flatnonzero(~contraction.hypergraph.allowed.any(axis=1))
    if lost.size:
        node = problem.graph.names[int(np.flatnonzero(contraction.block == lost[0])[0])]
        status = Status.INFEASIBLE
        detail = f"no device can hold node {node!r} with all nodes that must share its device"
    else:
        status = Status.GAVE_UP
        detail = "no assignment that fits the devices' memory was found within the budget"
    return plan_for(
        problem,
        device=np.zeros(problem.graph.num_nodes, np.int16),
        replicas={},
        evaluation=failed(status, problem.hardware.num_chips, detail),
        bound=0.0,
        optimizer=name,
        seed=seed,
        samples=progress.samples,
        wall_seconds=progress.wall_seconds,
        curve=tuple(progress.curve),
    )
