"""All assignments of blocks to chips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Plan, Problem, Progress, Status, with_bound
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.all_assignments import (
    MOST_ASSIGNMENTS,
    assignments,
    best_of_batch,
    gave_up,
    proved,
)
from go_rl.objectives.common.incumbent import finish_plan
from go_rl.objectives.ring.simulate.memory import confirm_memory
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.solvers.stage_costs import other_copies


def is_small_ring(problem: Problem) -> bool:
    """Whether all assignments of blocks can be tried."""
    instance = ring_workspace(problem).solver.instance
    most = np.log(MOST_ASSIGNMENTS) + 1e-9
    return bool(instance.num_blocks * np.log(problem.hardware.num_devices) <= most)


def exhaust_ring(problem: Problem, name: str, seed: int, progress: Progress) -> Plan:
    """Try blocks on chips with the copies that the pricer makes, then without any; see
    `Exhaustive`."""
    workspace = ring_workspace(problem)
    instance = workspace.solver.instance
    copyable = instance.replicated | other_copies(instance)
    variants, tried = [workspace], 0
    if instance.replicated.any():
        single = replace(problem, rules=replace(problem.rules, replicate=False))
        variants.append(ring_workspace(single))
    for variant in variants:
        if not variant.solver.feasible_so_far:
            continue
        shape = (variant.solver.instance.num_blocks, variant.chips)
        for stage in assignments(np.ones(shape, np.bool_)):
            tried += len(stage)
            if (best := _first_ring(variant, stage, progress)) is not None:
                plan = finish_plan(variant, best, name, seed, progress)
                plan = replace(plan, rules=problem.rules.name)
                return with_bound(plan, workspace.bound)
            if progress.remaining_seconds <= 0:
                return finish_plan(workspace, gave_up(workspace, tried), name, seed, progress)
    runs = np.isfinite(problem.seconds).any(axis=0).all()
    if copyable.any() and runs:
        return finish_plan(workspace, gave_up(workspace, tried), name, seed, progress)
    return finish_plan(workspace, proved(workspace, tried), name, seed, progress)


def _first_ring(
    workspace: RingWorkspace, stage: Int16[np.ndarray, "C M"], progress: Progress
) -> Decisions | None:
    """The best legal plan of a batch whose tensors find real memory offsets; None without one."""
    instance = workspace.solver.instance
    fixed = workspace.solver.fix(workspace.nodes_of(stage))
    kept = fixed.ok & (fixed.device[:, instance.leader] == stage).all(axis=1)
    seconds, _ = workspace.pricer.price(fixed.device)
    seconds = np.where(kept, seconds, np.inf)
    if best_of_batch(progress, seconds) is None:
        return None
    for row in np.argsort(seconds, kind="stable"):
        if not np.isfinite(seconds[row]):
            return None
        device = fixed.device[row]
        if workspace.problem.memory:
            status, _ = confirm_memory(workspace.problem, *workspace.pricer.place(device))
            if status is Status.OUT_OF_MEMORY:
                continue
        return Decisions(device[None])
    return None
