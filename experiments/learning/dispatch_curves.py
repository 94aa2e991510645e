"""Plans of the dispatch policy and of its arms in their order, and the best of the first ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import Budget, Problem
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.objectives.makespan.methods.composed import Composed
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent
from go_rl.policy.controls import controlled
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.learn.prototypes.forms import untrained_heads
from go_rl.policy.prototypes.plans import preferred
from go_rl.policy.weights import load_weights

CONTROLS = {"fixed order": "zero-output", "random encoder": "random-encoder", "blind": "blind"}
"""Control arms of the library by their names here."""


@dataclass(frozen=True)
class DispatchPolicies:
    """Option of the scripts that judge the dispatch policy."""

    weights: tuple[str, ...] = (
        "dispatch-2.5",
        "experiments/learning/runs/dispatch-wide-1/weights.npz",
    )
    """The policy by its training seeds, the one that ships first; only that one searches."""

    @cached_property
    def agents(self) -> list[Agent]:
        """The agents of the weights."""
        return [load_weights(weights).agent for weights in self.weights]

    def curve(
        self, arm: str, seed: int, plans: DispatchPlans, count: int
    ) -> Float64[np.ndarray, "S"]:
        """Return the best seconds after each of the first plans, at most ``count``, of *policy*,
        *untrained* or one of `CONTROLS`; a *random encoder* has the first weights."""
        if arm == "untrained":
            return best_so_far(plans, untrained_heads(count, seed))
        agent = self.agents[0 if arm == "random encoder" else seed]
        weights = preferred(controlled(agent, CONTROLS.get(arm), seed), plans)
        return best_so_far(plans, weights[:count])


@lru_cache(maxsize=1)
def last_priced(problem: ZooProblem) -> Problem:
    """Return a problem with the prices of its kind; the last one is kept."""
    return priced_problem(problem)


@lru_cache(maxsize=1)
def dispatch_plans(problem: ZooProblem, cost: str) -> DispatchPlans:
    """Return the plans of a problem by prices; those of the last one are kept."""
    return DispatchPlans(makespan_workspace(priced_problem(problem, cost)))


def best_so_far(
    plans: DispatchPlans, weights: Float32[np.ndarray, "S W"]
) -> Float64[np.ndarray, "S"]:
    """Return the best seconds after the plan of each weights; inf before the first that runs."""
    seconds = plans.dispatch.evaluate(weights).seconds
    return np.minimum.accumulate(np.where(np.isfinite(seconds), seconds, np.inf))


def composed_curve(plans: DispatchPlans, counts: Sequence[int]) -> Float64[np.ndarray, "S"]:
    """Return the seconds of `Composed` with so many samples, each repeated up to its count."""
    problem = plans.workspace.problem
    found = [Composed().optimize(problem, Budget(samples=k), 0).value for k in counts]
    return np.repeat(found, np.diff([0, *counts]))
