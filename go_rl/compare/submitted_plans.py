"""Submitted plans of the named problems: each is simulated anew, accepted by the independent
checker, and kept in a leaderboard (`go_rl.graphs.zoo.leaderboard`) if it is the best one known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from go_rl.core.decisions import Decisions
from go_rl.core.errors import PlanError, ZooError
from go_rl.core.files.run_lock import locked
from go_rl.core.plan import Plan, plan_for
from go_rl.core.problem import Problem
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.best_known import (
    BEST_VERSION,
    BestEntry,
    best_entries,
    best_known,
    decisions_digest,
)
from go_rl.graphs.zoo.index import zoo_entry
from go_rl.graphs.zoo.leaderboard import (
    ENDING,
    LIST,
    Submission,
    best_of,
    check_board,
    read_board,
    write_board,
)
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problem, zoo_problems
from go_rl.objectives.kits import kit_of
from go_rl.verify.check_plan import VALUE_TOLERANCE, check_belongs, check_plan

ROUNDING = 1e-9
"""Relative gain that is more than rounding."""


def submit(path: str | Path, board: str | Path, name: str | None = None) -> Submission:
    """Check a plan and simulate it anew; write it into the board if it is the best one known.

    Args:
        path: a plan.json.
        board: folder of the leaderboard; made if need be.
        name: of the problem; None: the one whose graph, hardware and decisions the plan has.

    Raises:
        PlanError: the plan is malformed, illegal or for another problem than the named one.
        ZooError: it is for none of the named problems, or the board is not a readable one.
    """
    plan, board = Plan.load(path), Path(board)
    problem = zoo_problem(name) if name is not None else named_problem(plan, str(path))
    entry = recomputed(plan, problem, str(path))
    with locked(board):
        listed = read_board(board) if (board / LIST).exists() else {}
        before, source = best_of(problem.name, listed, board)
        better = before is None or entry.seconds < before.seconds * (1 - ROUNDING)
        if better:
            plan.save(board / f"{problem.name}{ENDING}")
            write_board(board, {**listed, problem.name: entry})
    return Submission(entry, before, source, better)


def named_problem(plan: Plan, where: str) -> ZooProblem:
    """Return the named problem that a plan is for. One without priorities and kernels is for the
    problem that decides placement alone, where there are both.

    Raises:
        ZooError: there is none.
    """
    of_graph = [p for p in zoo_problems() if zoo_entry(p.graph).digest == plan.graph_hash]
    if not of_graph:
        raise ZooError(
            f"{where}: the plan's graph ({plan.graph_hash[:12]}…) is none of the named problems'; "
            "go-rl zoo best lists them"
        )
    reasons = {p: _unfit(plan, p) for p in sorted(of_graph, key=lambda p: len(p.decisions))}
    if fitting := [problem for problem, reason in reasons.items() if not reason]:
        return fitting[0]
    hardware = plan.hardware.get("name")
    closest = min(reasons, key=lambda p: (p.hardware != hardware, p.objective != plan.objective))
    raise ZooError(
        f"{where}: the plan is for none of the named problems of its graph "
        f"({', '.join(p.name for p in of_graph)}); {closest.name}: {reasons[closest]}"
    )


def _unfit(plan: Plan, named: ZooProblem) -> str:
    """Return why a plan is not for a problem of its graph; nothing: it is."""
    try:
        check_belongs(plan, priced_problem(named))
    except PlanError as error:
        return str(error)
    for decision, decided in (("schedule", plan.priority), ("fusion", plan.fusion_group)):
        if decided is not None and decision not in named.decisions:
            return f"the plan decides the {decision}, the problem does not"
    return ""


def recomputed(plan: Plan, named: ZooProblem, where: str) -> BestEntry:
    """Return the entry of a plan that the checker accepts, its seconds as the simulator has them.

    Raises:
        PlanError: the checker rejects the plan, or the simulator's value is another one.
    """
    problem = priced_problem(named)
    try:
        verdict = check_plan(plan, problem)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error
    if not verdict.ok:
        raise PlanError(f"{where}: the plan is rejected for {named.name}: {verdict.sentence}")
    seconds, bound = _simulated(problem, plan.decisions)
    if not abs(seconds - verdict.value) <= VALUE_TOLERANCE * verdict.value:
        raise PlanError(
            f"{where}: the checker computes {verdict.value:.9g} s and the simulator {seconds:.9g} s"
        )
    shipped = best_entries().get(named.name)
    return BestEntry(
        name=named.name,
        part=named.part,
        family=named.family,
        graph_digest=plan.graph_hash,
        seconds=verdict.value,
        bound=bound if shipped is None else max(bound, shipped.bound),
        method=plan.optimizer,
        seed=plan.seed,
        processor_seconds=round(plan.wall_seconds, 1),
        digest=decisions_digest(decision_arrays(plan)),
    )


def _simulated(problem: Problem, decisions: Decisions) -> tuple[float, float]:
    """Return the seconds of a plan as the simulator has them, and the quick bound."""
    workspace = kit_of(problem).workspace(problem)
    return float(workspace.detail(decisions).seconds), float(workspace.bound)


def decision_arrays(plan: Plan) -> dict[str, np.ndarray]:
    """Return the decisions of a plan as `go_rl.graphs.zoo.best_known` keeps them."""
    arrays = {"device": plan.device}
    if plan.priority is not None:
        arrays["priority"] = np.unique(plan.priority, return_inverse=True)[1].astype(np.int32)
    if plan.fusion_group is not None:
        arrays["fusion_group"] = plan.fusion_group.astype(np.int32)
    return arrays


def rebuild(board: Path) -> dict[str, BestEntry]:
    """Write the list of a board anew from its plans, all of them or, where any is refused, none.

    Raises:
        PlanError: plans are illegal, or their files have not the names of their problems; the
            message is about each.
        ZooError: see `go_rl.graphs.zoo.leaderboard.check_board`.
    """
    check_board(board)
    with locked(board):
        found, refused = _from_plans(board)
        if refused:
            raise PlanError("; ".join(refused))
        write_board(board, found)
    return found


def differences(board: Path) -> list[str]:
    """Return what is wrong in the list of a board and with its plans, a sentence a problem;
    nothing: the list is as its plans make it.

    Raises:
        ZooError: see `read_board`.
    """
    listed, (found, wrong) = read_board(board), _from_plans(board)
    wrong += [
        f"{name}: no plan stands beside the list"
        for name in listed
        if not (board / f"{name}{ENDING}").exists()
    ]
    wrong += [f"{name}: the plan is not in the list" for name in found if name not in listed]
    both = [name for name in found if name in listed]
    return wrong + [said for name in both for said in _difference(listed[name], found[name])]


def frozen_differences(problems: Sequence[ZooProblem]) -> Iterator[str]:
    """Yield a sentence for each of the problems whose shipped plan, simulated and checked anew, is
    illegal or not as fast as stated."""
    known = best_entries()
    for problem in (p for p in problems if p.name in known):
        try:
            found = recomputed(frozen_plan(problem), problem, BEST_VERSION)
        except PlanError as error:
            yield str(error)
        else:
            yield from _difference(known[problem.name], found)


def _difference(listed: BestEntry, found: BestEntry) -> Iterator[str]:
    if abs(listed.seconds - found.seconds) > VALUE_TOLERANCE * found.seconds:
        yield (
            f"{listed.name}: the list says {listed.seconds:.9g} s; the plan takes "
            f"{found.seconds:.9g} s"
        )
    elif listed.digest != found.digest:
        yield f"{listed.name}: the list is of another plan ({listed.digest[:12]}…)"


def frozen_plan(named: ZooProblem) -> Plan:
    """Return the shipped plan of a named problem, simulated anew."""
    known, problem = best_known(named.name), priced_problem(named)
    priority, group = (
        None if array is None else array.astype(np.int64)
        for array in (known.priority, known.fusion_group)
    )
    rows = (None if array is None else array[None] for array in (priority, group))
    decisions = Decisions(known.device[None], *rows)
    evaluation = kit_of(problem).workspace(problem).detail(decisions)
    return plan_for(
        problem, device=known.device, replicas={}, priority=priority, fusion_group=group,
        evaluation=evaluation, bound=known.entry.bound, optimizer=known.entry.method,
        seed=known.entry.seed, samples=0, wall_seconds=known.entry.processor_seconds,
    )  # fmt: skip


def _from_plans(board: Path) -> tuple[dict[str, BestEntry], list[str]]:
    """Entries of the plans of a board by name of problem, and a sentence for each refused plan."""
    found: dict[str, BestEntry] = {}
    refused: list[str] = []
    for path in sorted(board.glob(f"*{ENDING}")):
        name = path.name.removesuffix(ENDING)
        try:
            found[name] = recomputed(Plan.load(path), zoo_problem(name), str(path))
        except PlanError as error:
            refused.append(str(error))
        except ZooError as error:  # about the name alone
            refused.append(f"{path}: {error}")
    return found, refused
