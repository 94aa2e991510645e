"""The frozen graphs of the model zoo by name; `load` reads ``zoo:NAME``."""

from __future__ import annotations

from collections.abc import Iterator

from go_rl.graphs.zoo import SPLITS, ZOO_VERSION, ZooEntry, zoo_entry, zoo_names
from go_rl.graphs.zoo.best_known import BEST_VERSION, BestEntry, BestKnown, best_entries, best_known
from go_rl.graphs.zoo.generate.generated import generated_graph, generated_model
from go_rl.graphs.zoo.index import GENERATED_VERSION
from go_rl.graphs.zoo.load_model import ZOO_PREFIX
from go_rl.graphs.zoo.problems import Objective, ZooProblem, zoo_problems

__all__ = [
    "BEST_VERSION",
    "GENERATED_VERSION",
    "SPLITS",
    "ZOO_PREFIX",
    "ZOO_VERSION",
    "BestEntry",
    "BestKnown",
    "ZooEntry",
    "ZooProblem",
    "best_known",
    "generated_graph",
    "generated_model",
    "named_problems",
    "zoo_entry",
    "zoo_names",
    "zoo_problems",
]


def named_problems(
    part: str | None = None, objective: Objective | None = None
) -> Iterator[tuple[ZooProblem, BestEntry | None]]:
    """Yield named problems with the entry of their best-known plan, None where there is none.

    Raises:
        ZooError: no such side of the split.
    """
    known = best_entries()
    for problem in zoo_problems(part, objective):
        yield problem, known.get(problem.name)
