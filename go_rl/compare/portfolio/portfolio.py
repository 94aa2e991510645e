"""`run`: the heuristic and the best single device, then one method, all, or the portfolio ``auto``,
within a budget; never worse than these."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from go_rl.compare.portfolio.compilation import Compilation, announced, compile_method
from go_rl.compare.portfolio.registry import METHODS, ONE_DEVICE, methods_for
from go_rl.compare.portfolio.result import Result, summarise, worth
from go_rl.compare.portfolio.rounds import Portion, Rounds, first_round, joined
from go_rl.core import (
    Budget,
    Objective,
    Optimizer,
    Plan,
    PolicyError,
    Problem,
    Progress,
    SearchError,
    Status,
    with_bound,
)
from go_rl.core.errors import nearest
from go_rl.core.optimizer import Compiled, Cooled, PolicyMethod, Restartable, Resumable
from go_rl.core.stopping import ending_early, keep_plans, stop_asked
from go_rl.objectives.common.tiny_problem import tiny_problem
from go_rl.objectives.kits import kit_of
from go_rl.objectives.methods import Exhaustive, is_small

AUTO_METHOD, ALL_METHODS = "auto", "all"
CLASSICAL_AUTO = "auto-classical"
"""Words for several methods; the last is ``auto`` without a policy."""
WORDS = (AUTO_METHOD, CLASSICAL_AUTO, ALL_METHODS)
GOOD_ENOUGH = 1e-3
"""Gap to the proven bound at which ``auto`` stops looking."""
FALLBACK_SECONDS = 0.25
"""Time that the search for any plan at all may always take."""
LONGEST_FALLBACK = 10.0
"""Time that it may take when the budget counts samples only."""


def run(
    problem: Problem,
    method: str = AUTO_METHOD,
    budget: Budget | None = None,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
    extra: tuple[Optimizer, ...] = (),
    agent: Any = None,
    control: str | None = None,
) -> Result:
    """Run the heuristic and then one method, all of them, or the portfolio ``auto``.

    Args:
        problem: what to optimise.
        method: a name in `METHODS`, ``all``, ``auto``, or ``auto-classical``, which leaves the
            policy out of ``auto``.
        budget: for all methods together under ``auto``, for each one otherwise.
        seed: the one seed from which every choice follows.
        report: called with the name of each method before it runs.
        extra: further optimizers to run, such as an `Expert` or a `FineTuned` policy; ``auto``
            runs them first and goes on from the best plan so far.
        agent: the policy to use instead of the one that ships for the problem's objective.
        control: arm that decides in the policy's place; see `go_rl.policy.controls`.

    Raises:
        SearchError: the method is unknown, or cannot work on this objective; an agent or a control
            arm, and none of the methods has a policy.
    """
    _check_method(problem, method)
    if not any(isinstance(each, PolicyMethod) for each in extra):
        for given, what in (("weights are", agent), ("control is", control)):
            if what is not None:
                _check_has_policy(problem, method, given)
    budget = budget or Budget(seconds=20.0)
    with Compilation(problem, report or (lambda text: None), partial(_make, problem)) as compiled:
        learned = method != CLASSICAL_AUTO
        search = _PortfolioRun(problem, budget, seed, compiled, agent, control, learned)
        plans = search.references()
        if any(plan.evaluation.status.ok for plan in plans):
            keep_plans()
        for plan in search.others(method, extra, plans):
            plans.append(plan)
    return summarise(problem, plans)


def compile_methods(objective: Objective) -> None:
    """Compile (or load from disk) every method of an objective, as measurements want it."""
    for strict in (True, False) if objective.traits.has_rules else (False,):
        problem = tiny_problem(objective, strict)
        for name in methods_for(problem):
            compile_method(objective, strict, name, partial(_make, problem))


def _check_method(problem: Problem, method: str) -> None:
    allowed = methods_for(problem)
    if method in (*WORDS, *allowed):
        return
    if any(method in known for known in METHODS.values()):
        raise SearchError(
            f"method {method!r} cannot work on objective {problem.objective}; "
            f"use {', '.join(WORDS)} or one of {', '.join(allowed)}"
        )
    raise SearchError(
        f"unknown method {method!r}{nearest(method, (*WORDS, *allowed))} "
        f"Use {', '.join(WORDS)} or one of {', '.join(allowed)}"
    )


def _check_has_policy(problem: Problem, method: str, given: str) -> None:
    known = [
        name for name in methods_for(problem) if isinstance(_make(problem, name), PolicyMethod)
    ]
    if method not in (AUTO_METHOD, ALL_METHODS, *known):
        raise SearchError(
            f"{given} for methods with a policy, and {method!r} has none; use "
            f"{AUTO_METHOD}, {ALL_METHODS} or {', '.join(known)}, or leave it out"
        )


def _make(problem: Problem, name: str) -> Optimizer:
    return METHODS[problem.objective][name]()


@dataclass(frozen=True)
class _PortfolioRun:
    """One run of methods on a problem."""

    problem: Problem
    budget: Budget
    seed: int
    compilation: Compilation
    agent: Any
    """The user's policy, for the methods that have one."""
    control: str | None = None
    """Control arm in the policy's place."""
    learned: bool = True
    """Whether ``auto`` runs methods with a policy."""
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    """States of methods that go on from one turn of ``auto`` to the next, by name."""

    def references(self) -> list[Plan]:
        """Run the heuristic and, where several devices may share the work, the best one alone."""
        problem = self.problem
        first, *others = kit_of(problem).search().references
        plans = [self._reference(first)]
        self.compilation.announce(plans[0])
        several = "placement" in problem.decisions and problem.hardware.num_devices > 1
        if several and not plans[0].optimal:
            plans += map(self._reference, others)
        return plans

    def _reference(self, name: str) -> Plan:
        self.compilation.prepare(name)
        self.compilation.tell(name)
        return self._optimizer(name).optimize(self.problem, Budget(samples=100), self.seed)

    def others(self, method: str, extra: Sequence[Optimizer], known: list[Plan]) -> Iterator[Plan]:
        """Yield the plans of all other methods. Asked to stop (`go_rl.core.stopping`), the running
        one ends early; where it hangs on, the interrupt that follows ends it without its plan."""
        try:
            for optimizer in extra:
                self.compilation.tell(optimizer.name)
                yield optimizer.optimize(self.problem, self.budget, self.seed)
            if method in (AUTO_METHOD, CLASSICAL_AUTO):
                started = time.perf_counter()
                yield from self.auto(known)
                if not stop_asked():
                    yield from self.fallback(known, time.perf_counter() - started)
                return
            names = methods_for(self.problem) if method == ALL_METHODS else [method]
            done = {plan.optimizer for plan in known}
            for name in names:
                if name not in done and not stop_asked():
                    yield self.method(name)
        except KeyboardInterrupt:
            if not stop_asked():
                raise

    def method(self, name: str) -> Plan:
        """Run one method with the whole budget."""
        self.compilation.tell(name)
        optimizer = self._optimizer(name)
        self.compilation.prepare(name)
        self._compile(optimizer)
        return optimizer.optimize(self.problem, self.budget, self.seed)

    def auto(self, known: list[Plan]) -> list[Plan]:
        """Run the turns of the objective's kit in `Rounds`, each from the best plan so far; end
        when the gap is closed. Return one plan a method.

        A graph too large for the policy is left to the other methods.
        """
        plans: dict[str, Plan] = {}
        best = with_bound(min(known, key=worth), max(plan.bound for plan in known))
        progress, rounds = Progress(self.budget), self._rounds()
        while best.gap > GOOD_ENOUGH and not progress.spent:
            if (portion := rounds.next()) is None:
                break
            plan = None
            with ending_early():
                plan = self._turn(portion, best, progress)
            if plan is None:
                rounds.drop(portion)
                continue
            progress.samples += plan.samples
            better, before = worth(plan) < worth(best), plans.get(portion.turn.name)
            rounds.close(portion, plan, better)
            if before is not None:
                # What a method was given to start from is not its own.
                plan = joined(before, plan, better or plan.value > best.value)
            plans[portion.turn.name] = plan
            best = with_bound(min(best, plan, key=worth), max(best.bound, plan.bound))
        return list(plans.values())

    def _rounds(self) -> Rounds:
        problem, budget = self.problem, self.budget
        search = kit_of(problem).search()
        kind = None if self.agent is None else self.agent.config.kind
        theirs = kind is not None and any(turn.given == kind for turn in search.turns)
        learned = self.learned and not theirs
        turns = [
            turn._replace(name=turn.learned) if learned and turn.learned else turn
            for turn in search.turns
            if turn.suits(problem, budget)
            if self.learned or not isinstance(_make(problem, turn.name), PolicyMethod)
            if turn.given in (None, kind)
        ]
        length = budget if search.in_one_round else first_round(problem, budget)
        return Rounds(tuple(turns), length, problem)

    def _turn(self, portion: Portion, best: Plan, progress: Progress) -> Plan | None:
        """Run one method for one portion; None: it cannot take this problem."""
        name = portion.turn.name
        optimizer = self._optimizer(name, best)
        progress.started += self.compilation.prepare(name)
        if isinstance(optimizer, Cooled):
            optimizer = optimizer.with_cooling(portion.budget)
        if isinstance(optimizer, Resumable):
            optimizer = optimizer.with_memory(self.memory.setdefault(name, {}))
        try:
            if portion.round == 0:
                progress.started += self._compile(optimizer)
        except PolicyError as error:
            self.compilation.tell(f"policy left out: {error}")
            return None
        self.compilation.tell(name)
        seed = portion.seed(self.seed)
        return optimizer.optimize(self.problem, portion.within(progress), seed)

    def fallback(self, plans: list[Plan], spent: float) -> list[Plan]:
        """Try every plan of a small problem for which nothing was found, nor proved to exist.

        A plan at all is worth `FALLBACK_SECONDS` beyond the ``spent`` seconds of a budget.
        """
        problem, budget = self.problem, self.budget
        best = summarise(problem, plans).best.evaluation.status
        if best.ok or best in (Status.INFEASIBLE, Status.UNSUPPORTED) or not is_small(problem):
            return []
        optimizer = Exhaustive()
        self.compilation.tell(optimizer.name)
        used = sum(p.samples for p in plans[1:] if p.optimizer != ONE_DEVICE)
        samples = None if budget.samples is None else max(1, budget.samples - used)
        seconds = LONGEST_FALLBACK
        if budget.seconds is not None:
            seconds = max(FALLBACK_SECONDS, budget.seconds - spent)
        return [optimizer.optimize(problem, Budget(samples, seconds), self.seed)]

    def _optimizer(self, name: str, start: Plan | None = None) -> Optimizer:
        """A method with the user's policy, and a plan to start from, where it takes these."""
        optimizer: Any = _make(self.problem, name)
        if isinstance(optimizer, PolicyMethod):
            agent = optimizer.agent if self.agent is None else self.agent
            optimizer = replace(optimizer, agent=agent, control=self.control)
        if start is not None and start.evaluation.status.ok and isinstance(optimizer, Restartable):
            return optimizer.with_start(start)
        return optimizer

    def _compile(self, optimizer: Optimizer) -> float:
        """Compile networks for graphs of this size; return the seconds, which no budget pays.

        Raises:
            PolicyError: the graph is larger than any bucket.
        """
        if not isinstance(optimizer, Compiled):
            return 0.0
        self.compilation.tell(f"{optimizer.name} (compiled once for graphs of this size)")
        started = time.perf_counter()
        what = f"the network of {optimizer.name} for graphs of this size, once on this machine"
        with announced(self.compilation.tell, what):
            optimizer.prepare(self.problem)
        return time.perf_counter() - started
