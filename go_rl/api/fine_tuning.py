"""What `go_rl.fine_tune` and `go_rl.fine_tune_step` share: the run, and its model card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from go_rl.core import Budget, Plan, Problem
from go_rl.policy.weights import Weights
from go_rl.portfolio import portfolio

Trained = TypeVar("Trained", covariant=True)


@runtime_checkable
class FineTuner(Protocol[Trained]):
    """An optimizer that keeps what it learned."""

    @property
    def name(self) -> str:
        """As plans carry it."""
        ...

    def learn(self, problem: Problem, budget: Budget, seed: int) -> tuple[Plan, Trained]:
        """Return the best plan seen, and the agent after its last update."""
        ...


def learn(
    problem: Problem,
    learner: FineTuner[Trained],
    samples: int,
    seed: int,
    report: Callable[[str], None] | None = None,
) -> tuple[portfolio.Result, Trained]:
    """Run the heuristic, then let a policy learn from ``samples`` plans; return the trained agent
    too.

    Raises:
        SearchError: ``samples`` or the seed is out of range.
        TrainingError: a reward or gradient is not finite.
    """
    budget = Budget(samples=samples)
    heuristic = portfolio.run(problem, portfolio.methods_for(problem)[0], None, seed, report).plans
    if report is not None:
        report(f"{learner.name} ({samples} samples)")
    plan, agent = learner.learn(problem, budget, seed)
    return portfolio.summarise(problem, [*heuristic, plan]), agent


def tuned_card(before: Weights, problem: Problem, samples: int) -> dict[str, Any]:
    """Return the model card of weights that learned on one problem: from which, where, how long."""
    graph = problem.graph
    return {"fine-tuned from": before.name, "graph": graph.name, "digest": graph.digest,
            "package": problem.hardware.name, "cost": problem.cost_model, "samples": samples,
            "before": dict(before.card)}  # fmt: skip
