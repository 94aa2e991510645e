"""Searches on the training problems: the best weights found on each.

What is found lies in a folder that runs may share, a few problems a file; a search that is cut off
starts again, finished ones are kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError
from go_rl.core.files.whole_file import whole_file
from go_rl.core.printable import reason
from go_rl.objectives.common.cross_entropy import BATCH, KEPT, CrossEntropy
from go_rl.policy.learn.prototypes.forms import Form
from go_rl.policy.learn.prototypes.problems import ProblemSource, PrototypeProblem
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.runtime.array_file import UNREADABLE, read_arrays

FILES = 64
"""Files of a folder, among which problems are shared out by their graph's name."""
SAVED = 4
"""Weights that are kept of each problem."""
Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Searched:
    """Finds of the search on one problem."""

    rollouts: int
    """Rollouts of the search; 0: the problem has nothing to decide, or no plan."""
    seconds: Float64[np.ndarray, "S"]
    """[S] the best plans'; inf where there is none."""
    deviations: Float32[np.ndarray, "S W"]
    """[S, W] weights of these."""
    first: Float64[np.ndarray, "B"]
    """[B] seconds of the untrained weights that came first."""


def nothing(width: int) -> Searched:
    """Return what is kept of a problem with nothing to decide, of so many weights."""
    none = np.zeros((SAVED, width), np.float32)
    return Searched(0, np.full(SAVED, np.inf), none, np.full(BATCH, np.inf))


class SearchFolder:
    """Searches by the names of their problems, in files.

    Raises:
        CheckpointError: a file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: dict[Path, dict[str, Searched]] = {}

    def get(self, problem: PrototypeProblem) -> Searched | None:
        """Return what was found on a problem, None before its search."""
        return self._file(self._path(problem)).get(problem.name)

    def put(self, problem: PrototypeProblem, found: Searched) -> None:
        """Keep what was found; it is on the disk when this returns."""
        path = self._path(problem)
        rows = self._file(path)
        rows[problem.name] = found
        path.parent.mkdir(parents=True, exist_ok=True)
        names = sorted(rows)
        columns: dict[str, Any] = {
            name: np.stack([getattr(rows[key], name) for key in names])
            for name in ("rollouts", "seconds", "deviations", "first")
        }
        with whole_file(path) as file:
            np.savez_compressed(file, names=np.array(names), **columns)

    def _path(self, problem: PrototypeProblem) -> Path:
        return self.folder / f"searches-{zlib.crc32(problem.graph.encode()) % FILES:02d}.npz"

    def _file(self, path: Path) -> dict[str, Searched]:
        if path not in self._found:
            self._found[path] = _read(path) if path.exists() else {}
        return self._found[path]


def _read(path: Path) -> dict[str, Searched]:
    try:
        found = read_arrays(path)
        names = found["names"].tolist()
        rows = zip(
            found["rollouts"].tolist(), found["seconds"], found["deviations"], found["first"],
            strict=True,
        )  # fmt: skip
        return {name: Searched(*row) for name, row in zip(names, rows, strict=True)}
    except (*UNREADABLE, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path}: is no file of searches ({reason(error)}); delete it"
        ) from error


def search_all(
    problems: Sequence[PrototypeProblem], source: ProblemSource, folder: SearchFolder,
    form: Form, rollouts: int, report: Report, count: Callable[[int], None] = lambda samples: None,
) -> list[Searched]:  # fmt: skip
    """Return what searches of so many rollouts find on each problem; those done are not repeated.
    ``count`` is called with the rollouts of each new one.

    Raises:
        GoRLError: an own model cannot be read, or is no problem.
        CheckpointError: the folder holds a damaged file.
    """
    found = []
    for i, problem in enumerate(problems):
        known = folder.get(problem)
        if known is None or 0 < known.rollouts < rollouts:
            plans = source.plans(problem)
            known = nothing(form.width) if plans is None else searched(plans, form, rollouts, i)
            folder.put(problem, known)
            count(known.rollouts)
            report(
                f"search {i + 1}/{len(problems)} {problem.name}: {known.seconds[0] * 1e3:.4g} ms "
                f"({known.first.min() / known.seconds[0] - 1:.1%} below untrained weights)"
                if known.rollouts
                else f"search {i + 1}/{len(problems)} {problem.name}: nothing to decide"
            )
        found.append(known)
    return found


def searched(plans: PrototypePlans, form: Form, rollouts: int, seed: int) -> Searched:
    """Return the best weights of a search on one problem, from untrained weights."""
    search = CrossEntropy(form.untrained(BATCH, seed), seed)
    first = np.full(BATCH, np.inf)
    for turn in range(-(-rollouts // BATCH)):
        known = search.finds.seconds
        seconds = plans.seconds(search.ask(), float(known[-1]) if len(known) == KEPT else np.inf)
        search.tell(seconds)
        first = seconds if turn == 0 else first
        if search.settled:
            break
    best = search.finds.best(SAVED)
    if not np.isfinite(best.seconds[0]):
        return nothing(form.width)
    return Searched(rollouts, best.seconds, best.deviations, first)
