"""Code compiled before a method's budget begins, and only those that the run needs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from go_rl.core import Budget, Objective, Optimizer, Plan, Problem
from go_rl.core.optimizer import Milestone
from go_rl.core.unit_text import seconds_text
from go_rl.objectives.common.tiny_problem import tiny_problem
from go_rl.objectives.kits import kit_of

NOTHING_TO_WARM = ("exact", "policy", "dispatch-search", "hdp")
"""Methods that compile nothing of their own; a policy is compiled for a graph's size, later."""
MOMENT_SECONDS = 2.0
"""Compiling or loading for so long is not announced."""
_COMPILED: set[tuple[Objective, bool, str]] = set()


class Compilation:
    """Context of one run: `prepare` compiles a method, or loads it from disk."""

    def __init__(
        self, problem: Problem, tell: Callable[[str], None], method: Callable[[str], Optimizer]
    ) -> None:
        self.tell = tell
        self._problem, self._method = problem, method
        self._search = kit_of(problem).search()
        make = self._search.compilation
        self._parts = None if make is None else make(problem, tell)
        self._started = time.perf_counter()

    def __enter__(self) -> Compilation:
        if self._parts is not None:
            self._parts.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._parts is not None:
            self._parts.__exit__(*raised)

    def prepare(self, name: str) -> float:
        """Compile what the method needs; return the seconds that took, which no budget pays."""
        started = time.perf_counter()
        said = self._parts is not None and self._parts.first_run
        what = f"the code of {name}, once on this machine"
        with nullcontext() if said else announced(self.tell, what):
            if self._parts is not None:
                self._parts.need(*self._search.parts.get(name, ()))
            objective, strict = self._problem.objective, self._problem.rules.triangle
            if (objective, strict, name) not in _COMPILED:
                self.tell(f"code of {name} (compiled on the first run)")
                compile_method(objective, strict, name, self._method)
        return time.perf_counter() - started

    def announce(self, plan: Plan) -> None:
        """Say what the first plan is worth, where the user waited for the compiler."""
        if self._parts is None or not self._parts.first_run or not plan.evaluation.status.ok:
            return
        seconds = time.perf_counter() - self._started
        self.tell(
            Milestone(
                f"first legal plan after {seconds:.1f} s: {seconds_text(plan.value)} an iteration "
                f"({plan.optimizer})"
            )
        )


@contextmanager
def announced(tell: Callable[[str], None], what: str) -> Iterator[None]:
    """Say what is compiled, in a line that stays, where that takes longer than a moment."""
    sentence = Milestone(f"compiling {what}; the budget does not count it")
    timer = threading.Timer(MOMENT_SECONDS, tell, (sentence,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def compile_method(
    objective: Objective, strict: bool, name: str, method: Callable[[str], Optimizer]
) -> None:
    """Run a method on a tiny problem, once in a process."""
    _COMPILED.add((objective, strict, name))
    if name in NOTHING_TO_WARM:
        return
    problem = tiny_problem(objective, strict)
    method(name).optimize(problem, Budget(samples=3, seconds=30.0), 0)
