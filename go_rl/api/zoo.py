"""The frozen graphs of the model zoo by name; `load` reads ``zoo:NAME``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.core import OpGraph, PlanError
from go_rl.core.files.paths import path_of
from go_rl.graphs.zoo import SPLITS, ZOO_VERSION, ZooEntry, zoo_entry, zoo_names
from go_rl.graphs.zoo.best_known import BEST_VERSION, BestEntry, BestKnown, best_known
from go_rl.graphs.zoo.index import GENERATED_VERSION
from go_rl.graphs.zoo.leaderboard import LIST, Submission, best_of, read_board
from go_rl.graphs.zoo.load_model import ZOO_PREFIX
from go_rl.graphs.zoo.problems import Objective, ZooProblem, zoo_problems

if TYPE_CHECKING:
    from go_rl.graphs.zoo.generate.generated import GeneratedModel

__all__ = [
    "BEST_VERSION",
    "BOARD",
    "GENERATED_VERSION",
    "SPLITS",
    "ZOO_PREFIX",
    "ZOO_VERSION",
    "BestEntry",
    "BestKnown",
    "Submission",
    "ZooEntry",
    "ZooProblem",
    "best_differences",
    "best_known",
    "generated",
    "named_problems",
    "rebuild_board",
    "submit_plan",
    "zoo_entry",
    "zoo_names",
    "zoo_problems",
]


BOARD = "out/best"
"""Folder of the user's own leaderboard, unless another one is named."""


def generated(seed: int) -> tuple[GeneratedModel, OpGraph]:
    """Return the random network of a seed, and its graph; a `ZooError` for a seed out of range."""
    from go_rl.graphs.zoo.generate.generated import (  # JAX and flax: a second
        generated_graph,
        generated_model,
    )

    return generated_model(seed), generated_graph(seed)


def named_problems(
    part: str | None = None, objective: Objective | None = None, board: str | Path | None = None
) -> Iterator[tuple[ZooProblem, BestEntry | None, str]]:
    """Yield named problems with the entry of their best-known plan, None where there is none, and
    its source: `BEST_VERSION`, or the folder of the leaderboard.

    Args:
        part: side of the split; None: all.
        objective: ``ring`` or ``makespan``; None: both.
        board: folder of a leaderboard; None: `BOARD`, where there is one.

    Raises:
        ZooError: no such side of the split, or the leaderboard cannot be read.
    """
    folder = _board(board)
    listed = {} if folder is None else read_board(folder)
    for problem in zoo_problems(part, objective):
        yield problem, *best_of(problem.name, listed, folder or Path(BOARD))


def submit_plan(
    plan: str | Path, board: str | Path = BOARD, problem: str | None = None
) -> Submission:
    """Check a plan of a named problem and simulate it anew; write it into a leaderboard of the
    user's own if it is better than what ships and than what the leaderboard has.

    Args:
        plan: path of a plan.json.
        board: folder of the leaderboard; made if need be. What is installed is never written.
        problem: name of the problem; None: the one that the plan is for.

    Raises:
        PlanError: the plan is malformed, illegal or for another problem than the named one.
        ZooError: the plan is for none of the named problems, or the leaderboard cannot be read.
    """
    from go_rl.compare.submitted_plans import submit

    return submit(path_of(plan, "a plan", PlanError), path_of(board, "board", PlanError), problem)


def rebuild_board(board: str | Path = BOARD) -> dict[str, BestEntry]:
    """Compute the list of a leaderboard anew from its plans, and write it.

    Raises:
        PlanError: plans are illegal or for other problems than their files are named after; the
            message is about each, and the list stays as it was.
        ZooError: there is no such folder, or it holds no plan.
    """
    from go_rl.compare.submitted_plans import rebuild

    return rebuild(path_of(board, "board", PlanError))


def best_differences(
    part: str | None = None, objective: Objective | None = None, board: str | Path | None = None
) -> list[str]:
    """Simulate and check every best-known plan anew; return a sentence for each that is not as
    listed. Arguments and errors are those of `named_problems`."""
    from go_rl.compare.submitted_plans import differences, frozen_differences

    folder = _board(board)
    wrong = list(frozen_differences(zoo_problems(part, objective)))
    return wrong if folder is None else wrong + differences(folder)


def _board(board: str | Path | None) -> Path | None:
    if board is not None:
        return path_of(board, "board", PlanError)
    return Path(BOARD) if (Path(BOARD) / LIST).exists() else None
