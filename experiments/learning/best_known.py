"""Long runs of every method, for the best plans known: `go_rl.graphs.zoo.problems`, one file a
problem.

Run: ``python -m experiments.learning.best_known --folder build/best [--only PATTERN ...]
[--part test] [--objective ring] [--processes 16] [--seconds 120] [--minutes 9]``, as often as
there is time: every visit goes on from the plan in the folder and only improves it. A plan is
written when `go_rl.verify` has accepted it, aside and then renamed. ``--list`` prints what is
there. ``freeze_best.py`` makes the shipped file of it.

Beside ``NAME.plan.json`` stands ``NAME.visits.json``: seconds and turns spent, every improvement
with its method and seed, what each method's own best was, and methods that could not be imported.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

from experiments.learning.best_known_visit import Visit, read_visits, visit
from go_rl.core import ZooError
from go_rl.graphs.zoo.problems import PARTS, ZooProblem, zoo_problems

ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""A worker takes one core."""
TASKS = 6
"""Problems that a worker takes on."""


def chosen_problems(options: argparse.Namespace) -> list[ZooProblem]:
    """Return the problems that the options name.

    Raises:
        ZooError: there is none.
    """
    named = zoo_problems(options.part, options.objective)
    patterns = options.only or ["*"]
    found = [p for p in named if any(fnmatch.fnmatch(p.name, pattern) for pattern in patterns)]
    if not found:
        raise ZooError(f"no problem matches {' '.join(patterns)}; --list names them all")
    return found


def in_turn(problems: Sequence[ZooProblem], spent: Mapping[str, float]) -> list[ZooProblem]:
    """Return the problems with the fewest seconds first; among equals, families take turns."""
    met: Counter[tuple[str, str]] = Counter()
    turn = {}
    for problem in sorted(problems, key=lambda p: spent[p.name]):
        family = problem.objective, problem.family
        turn[problem.name] = spent[problem.name] > 0, met[family]
        met[family] += 1
    return sorted(problems, key=lambda p: (*turn[p.name], spent[p.name]))


def attempt(asked: Visit) -> tuple[bool, str]:
    """Visit a problem; a failure is a sentence, and the other problems go on."""
    try:
        return True, visit(asked)
    except Exception as error:
        return False, f"{asked.name}: failed: {type(error).__name__}: {error}"


def main(argv: Sequence[str] | None = None) -> int:
    """Visit the problems, those with the fewest seconds so far first."""
    options = _parser().parse_args(argv)
    problems = chosen_problems(options)
    visits = {p.name: read_visits(options.folder, p.name) for p in problems}
    if options.list:
        for problem in problems:
            print(visits[problem.name].sentence(problem))
        return 0
    open_ones = [p for p in problems if not visits[p.name].closed(options.closed)]
    open_ones = in_turn(open_ones, {name: known.seconds for name, known in visits.items()})
    print(f"{len(problems)} problems, {len(problems) - len(open_ones)} of them closed", flush=True)
    ends = time.time() + 60 * options.minutes if options.minutes else float("inf")
    os.environ.update(ONE_THREAD)
    context = get_context("spawn")
    asked = [
        Visit(p.name, options.folder, options.seconds, ends, tuple(options.methods))
        for p in open_ones
    ]
    failed = 0
    # A worker keeps the workspaces of the problems it met: it is replaced after a few of them.
    with context.Pool(options.processes, maxtasksperchild=TASKS) as pool:
        for ok, sentence in pool.imap_unordered(attempt, asked):
            failed += not ok
            print(sentence, flush=True)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.learning.best_known")
    add = parser.add_argument
    add("--folder", type=Path, default=Path("build/best"), help="where plans are kept")
    add("--only", nargs="+", metavar="PATTERN", help="names of problems, such as 'gnmt*ring36*'")
    add("--part", choices=PARTS, help="one side of the split")
    add("--objective", choices=("ring", "makespan"))
    add(
        "--methods",
        nargs="+",
        default=(),
        help="only these methods (go_rl.compare.portfolio.registry)",
    )
    add("--processes", type=int, default=1, help="workers, one core each")
    add("--seconds", type=float, default=60.0, help="of the processor for each problem")
    add("--minutes", type=float, help="of the whole run: no search goes on after it")
    add("--closed", type=float, default=1e-3, help="gap to the bound that needs no search")
    add("--list", action="store_true", help="print what is known, and end")
    return parser


if __name__ == "__main__":
    sys.exit(main())
