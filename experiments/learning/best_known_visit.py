"""One visit to a problem: turns of every method, each from the best plan so far."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from go_rl.core import Budget, Optimizer, Plan, Problem, with_bound
from go_rl.core.files.whole_file import write_text
from go_rl.core.optimizer import Restartable
from go_rl.zoo.problems import ZooProblem, zoo_problem

LEAST_TURN = 4.0
"""Seconds of the shortest turn of a method that goes on for as long as it may."""
ROUNDS = 2
"""Times that a visit comes round to every method."""
LEARNED_FROM = 200.0
"""Seconds of a visit from which learned methods take part: their networks compile for long."""
LEARNED = ("policy", "policy-placement", "hdp")
ONCE = ("greedy", "default", "expert", "heft", "composed", "fusion-greedy", "metis", "ideal-dp")
"""Methods that find the same again, or are done soon: they run in the first round only."""
GAIN = 1e-9
"""Least relative gain that counts."""


@dataclass(frozen=True)
class Visit:
    """What a worker is asked to do."""

    name: str
    folder: Path
    seconds: float
    """Of search."""
    ends: float
    """Unix time after which no search goes on."""
    methods: tuple[str, ...] = ()
    """Only these; empty: all."""


@dataclass
class Visits:
    """All that was done about a problem; the file ``NAME.visits.json``."""

    seconds: float = 0.0
    """Of search, all visits together."""
    turns: int = 0
    """Runs of one method; the seed of the next."""
    value: float | None = None
    """Seconds an iteration of the best plan."""
    bound: float = 0.0
    """Proven lower bound, seconds."""
    improvements: list[dict[str, Any]] = field(default_factory=list)
    """Method, seed, seconds of search so far and value of every new best plan."""
    own_best: dict[str, float] = field(default_factory=dict)
    """Best value by method when it did not start from another method's plan."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Methods that could not run, and why."""

    @property
    def gap(self) -> float:
        """Distance of the best plan from the bound."""
        if self.value is None or self.bound <= 0:
            return float("inf")
        return self.value / self.bound - 1.0

    def closed(self, gap: float) -> bool:
        """Whether the best plan is this near to the bound."""
        return self.gap <= gap

    def sentence(self, problem: ZooProblem) -> str:
        """What is known, as a line."""
        start = f"{problem.part} {problem.family} {problem.name}:"
        if self.value is None:
            return f"{start} no plan after {self.seconds:.0f} s {self.left_out or ''}"
        by = self.improvements[-1]["method"] if self.improvements else "?"
        return (
            f"{start} {self.value:.6g} s by {by}, gap {self.gap:.1%}, {self.seconds:.0f} s, "
            f"{self.turns} turns"
        )


def plan_path(folder: Path, name: str) -> Path:
    """Return where the best plan of a problem is kept."""
    return folder / f"{name}.plan.json"


def visits_path(folder: Path, name: str) -> Path:
    """Return where its history is kept."""
    return folder / f"{name}.visits.json"


def read_visits(folder: Path, name: str) -> Visits:
    """Return the history of a problem; a new one where there is none."""
    path = visits_path(folder, name)
    return Visits(**json.loads(path.read_text())) if path.exists() else Visits()


def visit(asked: Visit) -> str:
    """Search for the seconds asked and return a sentence; runs in a worker process."""
    named = zoo_problem(asked.name)
    if time.time() >= asked.ends:
        return f"{named.name}: no time left"
    asked.folder.mkdir(parents=True, exist_ok=True)
    from go_rl.cost.zoo_problem import priced_problem

    problem = priced_problem(named)
    known = _Known(named, problem, asked.folder)
    _rounds(known, asked)
    known.write_history()
    return known.visits.sentence(named)


class _Known:
    """The best plan of a problem, on disk as soon as it is better."""

    def __init__(self, named: ZooProblem, problem: Problem, folder: Path) -> None:
        self.named, self.problem, self.folder = named, problem, folder
        self.visits = read_visits(folder, named.name)
        path = plan_path(folder, named.name)
        self.plan = Plan.load(path) if path.exists() else None
        if self.plan is not None and not self._accepted(self.plan):
            self.plan, self.visits = None, Visits()  # of another version of graph or simulator

    def offer(self, plan: Plan, method: str, seed: int) -> None:
        """Keep a plan if it is legal by the checker and better."""
        visits = self.visits
        best = float("inf") if self.plan is None else self.plan.value
        visits.bound = max(visits.bound, min(plan.bound, best, plan.value))
        ok = plan.evaluation.status.ok
        if not ok or plan.value >= best * (1 - GAIN) or not self._accepted(plan):
            return
        self.plan = replace(plan, curve=())
        visits.value = plan.value
        visits.improvements.append(
            {"method": method, "seed": seed, "seconds": visits.seconds, "value": plan.value}
        )
        kept = with_bound(self.plan, max(visits.bound, plan.bound))
        text = json.dumps(kept.to_json(), allow_nan=False, separators=(",", ":"))
        write_text(plan_path(self.folder, self.named.name), text + "\n")
        self.write_history()

    def write_history(self) -> None:
        """Write ``NAME.visits.json``."""
        text = json.dumps(asdict(self.visits), indent=1, allow_nan=False)
        write_text(visits_path(self.folder, self.named.name), text + "\n")

    def _accepted(self, plan: Plan) -> bool:
        from go_rl.portfolio.result import summarise
        from go_rl.verify.check_plan import check_plan

        confirmed = summarise(self.problem, [plan]).best
        return confirmed.evaluation.status.ok and check_plan(confirmed, self.problem).ok


def _rounds(known: _Known, asked: Visit) -> None:
    methods = _methods(known, asked)
    started = time.perf_counter()
    before, first = known.visits.seconds, known.visits.turns == 0

    def left() -> float:
        return min(asked.seconds - (time.perf_counter() - started), asked.ends - time.time())

    turn = max(LEAST_TURN, asked.seconds / (ROUNDS * max(1, len(methods))))
    while left() > 0 and not known.visits.closed(0.0):
        ran = 0
        for method, make in methods.items():
            if left() <= 0:
                break
            if method in ONCE and not (first and method not in known.visits.own_best):
                continue
            seconds, ran = max(0.5, min(turn, left())), ran + 1
            for start in (False, True) if known.visits.turns >= len(methods) else (False,):
                _turn(known, method, make, seconds, start)
                known.visits.seconds = before + time.perf_counter() - started
        if not ran:
            break


def _turn(
    known: _Known, method: str, make: Callable[[], Optimizer], seconds: float, start: bool
) -> None:
    """Run one method once; from the best plan if ``start``, which not all can."""
    visits, optimizer = known.visits, make()
    warm = start and isinstance(optimizer, Restartable) and known.plan is not None
    if start and not warm:
        return
    if warm:
        optimizer = optimizer.with_start(known.plan)  # pyright: ignore[reportAttributeAccessIssue]
    seed = zlib.crc32(f"{known.named.name} {visits.turns}".encode())
    visits.turns += 1
    try:
        plan = optimizer.optimize(known.problem, Budget(seconds=seconds), seed)
    except Exception as error:
        visits.left_out[method] = f"{type(error).__name__}: {error}"[:300]
        return
    if not warm and plan.evaluation.status.ok:
        visits.own_best[method] = min(plan.value, visits.own_best.get(method, float("inf")))
    known.offer(plan, f"{method} from the best plan" if warm else method, seed)


def _methods(known: _Known, asked: Visit) -> dict[str, Callable[[], Optimizer]]:
    from go_rl.portfolio.registry import EXACT_CELLS, methods_of

    problem = known.problem
    found = methods_of(problem.objective)
    large = problem.graph.num_nodes * problem.hardware.num_chips > EXACT_CELLS
    drop = {"random", *(("exact",) if large else ())}
    drop |= set(LEARNED) if asked.seconds < LEARNED_FROM else set()
    if asked.methods:
        return {name: make for name, make in found.items() if name in asked.methods}
    return {name: make for name, make in found.items() if name not in drop}
