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
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problem


@dataclass(frozen=True)
class Turn:
    """How much one run of a method may try, in samples: equal on a busy and on an idle machine."""

    samples: float
    """In the first round; each round doubles it."""
    by_node: bool = True
    """`samples` are divided by the nodes of the graph, as one costs time in proportion to them."""
    since: int = 0
    """First round that it takes part in."""
    brake: float = 60.0
    """Seconds on the clock after which it ends in any case."""
    again: bool = True
    """Whether further rounds, with other seeds or from the best plan, find anything else."""

    def budget(self, problem: Problem, round_: int) -> Budget:
        """Return the budget of a round."""
        samples = self.samples / (problem.graph.num_nodes if self.by_node else 1)
        doubled = samples * 2 ** min(round_ - self.since, MOST_DOUBLINGS)
        return Budget(samples=max(40, int(doubled)), seconds=self.brake)


TURNS: dict[str, Turn] = {
    "greedy": Turn(1, again=False),
    "default": Turn(1, again=False),
    "composed": Turn(100, by_node=False, again=False),
    "linear-dp": Turn(40, by_node=False),
    "unit-annealing": Turn(3e5, by_node=False),
    "local-search": Turn(3e5, by_node=False),
    "annealing": Turn(1.5e6),
    "order-search": Turn(4e6, since=1),
    "metis": Turn(100, by_node=False, since=1, again=False),
    "expert": Turn(1, since=1, again=False),
    "heft": Turn(100, by_node=False, since=1, again=False),
    "fusion-greedy": Turn(100, by_node=False, since=1, again=False),
    "ideal-dp": Turn(100, by_node=False, since=1, brake=5.0),
    "exact": Turn(100, by_node=False, since=2, brake=20.0),
    "policy": Turn(200, by_node=False, since=3),
    "policy-placement": Turn(200, by_node=False, since=3),
}
"""By method, in the order in which they run; the networks of policies compile for long."""
OTHERS = Turn(200, by_node=False, since=2)
"""Of methods that are not in the table."""
LEFT_OUT = ("hdp", "random")
MOST_DOUBLINGS = 6
GAIN = 1e-9
"""Least relative gain that counts."""


@dataclass(frozen=True)
class Visit:
    """What a worker is asked to do."""

    name: str
    folder: Path
    seconds: float
    """Of the processor."""
    ends: float
    """Unix time after which no search goes on."""
    methods: tuple[str, ...] = ()
    """Only these; empty: all."""


@dataclass
class Visits:
    """All that was done about a problem; the file ``NAME.visits.json``."""

    seconds: float = 0.0
    """Of the processor in searches, all visits together."""
    turns: int = 0
    """Runs of one method; the seed of the next."""
    rounds: int = 0
    """Rounds of all methods that were begun."""
    value: float | None = None
    """Seconds an iteration of the best plan."""
    bound: float = 0.0
    """Proven lower bound, seconds."""
    improvements: list[dict[str, Any]] = field(default_factory=list)
    """Method, seed, samples, seconds so far and value of every new best plan."""
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
    from go_rl.costs.models.zoo_problem import priced_problem

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
            {
                "method": method,
                "seed": seed,
                "samples": plan.samples,
                "seconds": visits.seconds,
                "value": plan.value,
            }
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
        from go_rl.compare.portfolio.result import summarise
        from go_rl.verify.check_plan import check_plan

        confirmed = summarise(self.problem, [plan]).best
        return confirmed.evaluation.status.ok and check_plan(confirmed, self.problem).ok


def _rounds(known: _Known, asked: Visit) -> None:
    """Run rounds of all methods until the seconds are spent, each also from the best plan."""
    visits, methods = known.visits, _methods(known, asked)
    before, started = visits.seconds, time.process_time()
    while not visits.closed(0.0):
        round_, ran = visits.rounds, 0
        for method, make in methods.items():
            turn = TURNS.get(method, OTHERS)
            if round_ < turn.since or (round_ > turn.since and not turn.again):
                continue
            for warm in (False, True):
                if time.process_time() - started >= asked.seconds or time.time() >= asked.ends:
                    return
                ran += _turn(known, method, make, turn.budget(known.problem, round_), warm)
                visits.seconds = before + time.process_time() - started
        visits.rounds += 1
        if not ran and round_ > 3:
            return


def _turn(
    known: _Known, method: str, make: Callable[[], Optimizer], budget: Budget, warm: bool
) -> bool:
    """Run one method once, from the best plan if ``warm``; False for one that takes none."""
    visits, optimizer = known.visits, make()
    if warm:
        if known.plan is None or not isinstance(optimizer, Restartable):
            return False
        optimizer = optimizer.with_start(known.plan)
    seed = zlib.crc32(f"{known.named.name} {visits.turns}".encode())
    visits.turns += 1
    try:
        plan = optimizer.optimize(known.problem, budget, seed)
    except Exception as error:
        visits.left_out[method] = f"{type(error).__name__}: {error}"[:300]
        return False
    if not warm and plan.evaluation.status.ok:
        visits.own_best[method] = min(plan.value, visits.own_best.get(method, float("inf")))
    known.offer(plan, f"{method} from the best plan" if warm else method, seed)
    return True


def _methods(known: _Known, asked: Visit) -> dict[str, Callable[[], Optimizer]]:
    """The methods of the objective, those of `TURNS` first."""
    from go_rl.compare.portfolio.registry import METHODS
    from go_rl.objectives.ring.search import EXACT_CELLS, cells_of

    problem = known.problem
    found = METHODS[problem.objective]
    drop = {*LEFT_OUT, *(("exact",) if cells_of(problem) > EXACT_CELLS else ())}
    ordered = [name for name in TURNS if name in found]
    ordered += [name for name in found if name not in TURNS]
    wanted = [n for n in ordered if (n in asked.methods if asked.methods else n not in drop)]
    return {name: found[name] for name in wanted}
