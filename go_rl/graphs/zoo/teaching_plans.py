"""Best-known plans that may teach: those of training problems, and no others."""

from __future__ import annotations

from go_rl.core.errors import ZooError
from go_rl.graphs.zoo.best_known import BestKnown, best_entries, best_known
from go_rl.graphs.zoo.problems import Objective, zoo_problem, zoo_problems


def teaching_names(objective: Objective) -> tuple[str, ...]:
    """List the training problems of an objective that have a best-known plan."""
    known = best_entries()
    return tuple(p.name for p in zoo_problems("train", objective) if p.name in known)


def teaching_plan(name: str) -> BestKnown:
    """Return the best-known plan of a training problem.

    Raises:
        ZooError: the problem is one of validation or test, whose plans never teach or select; or
            there is no such problem, or no plan for it.
    """
    part = zoo_problem(name).part
    if part != "train":
        raise ZooError(
            f"{name} is a problem of the {part} split: its best-known plan must not teach. Ask for "
            "one of go_rl.graphs.zoo.teaching_plans.teaching_names"
        )
    return best_known(name)
