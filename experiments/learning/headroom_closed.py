"""How much of what there is to win the policies, their control arms and other methods close.

Run: ``python -m experiments.learning.headroom_closed [--weights NAME ...] [--minutes 9]
[--only-pages]``, after ``headroom.py`` (R) and ``freeze_best.py`` (B), as often as there is time.
Learning, and placements on a ring, run on the ``--per-family`` smallest problems of each family; on
validation only learning runs, by which the threshold is chosen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from experiments.experiment import RESULTS, Experiment, deadline, say
from experiments.learning import headroom
from experiments.learning.headroom_measure import REFERENCE_SECONDS, Headroom
from experiments.learning.headroom_runs import (
    MOST,
    SAMPLES,
    classical_runs,
    learning,
    make_runs,
    placing,
    plans_by_method,
    weights_of,
    zero_shot,
)
from experiments.learning.headroom_tables import Scored, section
from experiments.rows import grouped, in_turn, read_rows
from go_rl.compare.benchmark.run_store import ProblemName, Run, RunStore
from go_rl.graphs.zoo.best_known import BEST_VERSION, FOLDER, BestEntry, best_entries, frozen_hash
from go_rl.graphs.zoo.index import zoo_entry
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problems

NAME = "headroom_closed"
OBJECTIVES = ("ring", "makespan")
SHIPPED = ("partition-1.1", "dispatch-2.5")


STAGES = ("classical", "zero-shot", "placement", "learning")
"""Kinds of runs; the last two only where policies learn."""


@dataclass(frozen=True)
class HeadroomClosed(Experiment):
    """Options of this experiment."""

    weights: tuple[str, ...] = SHIPPED
    """Names or files of weights, of either objective."""
    only: tuple[str, ...] = ("*",)
    """Patterns of names of problems whose runs are made; the page has all that were."""
    objective: str = ""
    """ring or makespan; empty: both."""
    parts: tuple[str, ...] = ("test", "validation")
    """Sides of the split."""
    stages: tuple[str, ...] = STAGES
    """What is run."""
    seeds: int = 3
    """Evaluation seeds of zero-shot policies, arms and classical methods."""
    tuned_seeds: int = 3
    """Evaluation seeds of learning."""
    most_nodes: int = 11_000
    """Largest graph that is scored."""
    tuned_nodes: int = 2_600
    """Largest graph on which policies learn."""
    per_family: int = 2
    """Problems of a family on which policies learn."""
    best: Path = FOLDER
    """Folder of the frozen best-known plans."""
    minutes: float = 0.0
    """Time after which no problem begins; 0: none."""
    only_pages: bool = False
    """Run nothing."""

    def run(self) -> None:
        """Make the missing runs; where none is missing, the page."""
        ends = deadline(self.minutes)
        for objective in OBJECTIVES:
            if self.only_pages or self.objective not in ("", objective):
                continue
            for part in self.parts:
                if not _make(scored_problems(objective, part, self), self, ends):
                    return
        self.write_page(page(self))


def scored_problems(objective: str, part: str, options: HeadroomClosed) -> list[Scored]:
    """Return all problems of a part, smallest graph first, with the runs that exist of them.

    On validation a problem needs no headroom: thresholds are chosen there, nothing is scored.
    """
    known = best_entries(options.best)
    rows = read_rows(headroom.Run, RESULTS / f"{headroom.NAME}.csv")
    rooms = {p.name: room for p, room in headroom.headrooms(objective, rows, known)}
    kept, met, found = _stored(objective), Counter(), []
    named = [p for p in zoo_problems(part) if p.objective == objective]
    for problem in sorted(named, key=lambda p: (zoo_entry(p.graph).nodes, p.name)):
        nodes, room = zoo_entry(problem.graph).nodes, rooms.get(problem.name)
        best = _best(problem.name, known, rows)
        why = _left_out(part, room, best)
        if not why and nodes > options.most_nodes:
            why = f"more than {options.most_nodes:,} nodes"
        learns = not why and nodes <= options.tuned_nodes
        learns = learns and met[problem.family] < options.per_family
        met[problem.family] += learns
        plans = plans_by_method(kept.get(key_of(problem), []))
        found.append(Scored(problem, room, best, learns, why, plans))
    return found


def _best(name: str, known: Mapping[str, BestEntry], rows: Sequence[headroom.Run]) -> float | None:
    """Seconds of the best-known plan, or of a classical method's run where that is better."""
    values = [row.value for row in rows if row.problem == name and np.isfinite(row.value)]
    return min([*values, known[name].seconds] if name in known else values, default=None)


def _left_out(part: str, room: Headroom | None, best: float | None) -> str:
    if best is None:
        return "no plan is known"
    if part == "test" and room is None:
        return "no best-known plan or no reference plan"
    return "nothing to win" if part == "test" and room is not None and not room.enters else ""


def _stored(objective: str) -> dict[tuple[str, ...], list[Run]]:
    """Return the finished runs by problem; of runs that differ in their weights alone the last."""
    runs = RunStore(RESULTS / NAME / objective).runs
    last = {(run.problem, run.digest, run.method, run.seed, run.budget): run for run in runs}
    return grouped(last.values(), lambda run: _named(run.problem))


def _named(name: ProblemName) -> tuple[str, ...]:
    return name.graph, name.hardware, name.decide, str(name.all_chips)


def key_of(problem: ZooProblem) -> tuple[str, ...]:
    """Return what names a problem in stored runs."""
    decide = "" if problem.objective == "ring" else ",".join(problem.decisions)
    return problem.graph, problem.hardware, decide, str(problem.all_chips)


def _make(scored: Sequence[Scored], options: HeadroomClosed, ends: float) -> bool:
    """Make the missing runs, families taking turns; False when time ran out before."""
    for each in in_turn((s for s in scored if not s.left_out), lambda s: s.problem.family):
        problem = each.problem
        if not any(fnmatch(problem.name, pattern) for pattern in options.only):
            continue
        folder = RESULTS / NAME / problem.objective
        weights = weights_of(options.weights, problem.objective)
        test = problem.part == "test"
        if time.time() >= ends:
            return False
        stages = options.stages
        if test and "classical" in stages:
            classical_runs(problem, options.seeds, folder, say)
        for one in weights:
            if time.time() >= ends:
                return False
            chosen = zero_shot(one) if "zero-shot" in stages else {}
            if each.learns and "placement" in stages and problem.objective == "ring":
                chosen |= placing(one)
            if test and chosen:
                make_runs(problem, chosen, options.seeds, folder, say)
            if each.learns and "learning" in stages:
                make_runs(problem, learning(one), options.tuned_seeds, folder, say)
    return True


def policies(scored: Sequence[Scored], weights: Sequence[str]) -> list[str]:
    """Return the names of those weights of which zero-shot runs were made; a file's name is that of
    its weights. Nothing is read, so that a page needs no weights."""
    wanted = [Path(name).name.removesuffix(".npz") for name in weights]
    return [name for name in wanted if any(name in each.plans for each in scored)]


def page(options: HeadroomClosed) -> str:
    """Return the page."""
    entries = best_entries(options.best).values()
    hours = sum(entry.processor_seconds for entry in entries) / 3600
    text = (
        "# Headroom closed\n\n"
        "Headroom closed = Σ log(R/T) / Σ log(R/B) over the test problems that enter, families "
        "weighted equally, with the 95 % interval of a bootstrap over families. R: the median plan "
        f"of the reference method after {REFERENCE_SECONDS:.0f} seconds of a processor "
        f"(`headroom.md`). B: the best-known plans of {BEST_VERSION}, hash "
        f"`{frozen_hash(entries)[:12]}`, frozen before anything here was scored, after {hours:.2f} "
        f"hours of a processor for {len(entries)} problems in all, far less than the hour a "
        "problem that was planned: more room is likely than these B show. T: the best plan "
        f"after {SAMPLES[0]} or {MOST} samples, a sample being one complete plan that is priced. "
        f"{options.seeds} evaluation seeds, of learning {options.tuned_seeds}. Costs, rules and "
        "memory are the same for R, B and T. 0 % is the reference, 100 % the best known; below 0 % "
        "a plan is worse than what the best classical method has after three seconds. T/B: "
        "medians over seeds, geometric means over problems and then families; inf: a failure.\n"
    )
    for objective in OBJECTIVES:
        test = scored_problems(objective, "test", options)
        names = policies(test, options.weights)
        validation = scored_problems(objective, "validation", options)
        text += section(objective, names, test, validation)
    return text


if __name__ == "__main__":
    HeadroomClosed.main()
