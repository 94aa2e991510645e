"""The prototypes: few vectors of weights of which one is good on every graph.

The best weights that searches found on some problems are tried on others; then weights are taken
one after the other, each the one that most improves the best of those so far (a greedy cover).
Kinds of networks count alike, however many problems each has. What compilers have (`Form.given`) is
among the prototypes in any case, for networks unlike all that taught.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Float64

from go_rl.core import CheckpointError, TrainingError
from go_rl.core.files.whole_file import whole_file
from go_rl.core.printable import reason
from go_rl.policy.learn.prototypes.problems import ProblemSource, PrototypeProblem
from go_rl.policy.learn.prototypes.searches import Report, Searched
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.runtime.array_file import UNREADABLE, read_arrays

WORST = 1.0
"""Regret, as a logarithm, beyond which all weights count as equally bad."""
KEEP_EVERY = 20
"""Problems priced between two writings of a table."""
PRICED = 64
"""Rollouts priced at a time."""


class PriceTable:
    """Seconds of given weights on problems, kept in a file and completed row by row; ``count`` is
    called with the rollouts of each new row.

    Raises:
        CheckpointError: the file is damaged.
    """

    def __init__(
        self, path: Path, deviations: Float32[np.ndarray, "C W"],
        count: Callable[[int], None] = lambda rollouts: None,
    ) -> None:  # fmt: skip
        self.path, self.deviations, self._count = path, deviations, count
        self._rows: dict[str, Float64[np.ndarray, "C"]] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            found = read_arrays(self.path)
            if np.array_equal(found["deviations"], self.deviations):
                self._rows = dict(zip(found["names"].tolist(), found["seconds"], strict=True))
        except (*UNREADABLE, KeyError, ValueError) as error:
            raise CheckpointError(
                f"{self.path}: is no table ({reason(error)}); delete it"
            ) from error

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        names = sorted(self._rows)
        seconds = np.array([self._rows[name] for name in names])
        with whole_file(self.path) as file:
            np.savez_compressed(
                file, names=np.array(names), seconds=seconds, deviations=self.deviations
            )

    def take(self, rows: Mapping[str, Float64[np.ndarray, "C"]]) -> None:
        """Take in rows that are known from elsewhere."""
        self._rows = {**rows, **self._rows}

    def completed(
        self, problems: Sequence[PrototypeProblem], source: ProblemSource,
        best: Float64[np.ndarray, "P"], report: Report, what: str,
        visit: Callable[[PrototypeProblem, PrototypePlans], None] | None = None,
    ) -> Float64[np.ndarray, "P C"]:  # fmt: skip
        """Return [P, C] seconds, where they are within `WORST` of the ``best`` known; only problems
        that are new are priced, and then ``visit``ed."""
        most = {p.name: s * np.exp(WORST) for p, s in zip(problems, best.tolist(), strict=True)}
        missing = [problem for problem in problems if problem.name not in self._rows]
        for i, problem in enumerate(missing):
            plans = source.searched(problem)
            self._rows[problem.name] = priced(plans, self.deviations, most[problem.name])
            self._count(len(self.deviations))
            if visit is not None:
                visit(problem, plans)
            if (i + 1) % KEEP_EVERY == 0 or i + 1 == len(missing):
                self._write()
                report(f"{what}: {i + 1} of {len(missing)} problems")
        return np.array([self._rows[problem.name] for problem in problems])


def priced(
    plans: PrototypePlans, deviations: Float32[np.ndarray, "C W"], most: float = np.inf
) -> Float64[np.ndarray, "C"]:
    """Return [C] seconds of the plans of [C, W] weights; see `PrototypePlans.seconds`."""
    found = [
        plans.seconds(deviations[i : i + PRICED], most) for i in range(0, len(deviations), PRICED)
    ]
    return np.concatenate(found)


def spread_choice(problems: Sequence[PrototypeProblem], count: int, seed: int) -> list[int]:
    """Return the numbers of at most ``count`` problems, as evenly over kinds as there are some."""
    rng = np.random.default_rng(seed)
    by_kind: dict[str, list[int]] = {}
    for i in rng.permutation(len(problems)).tolist():
        by_kind.setdefault(problems[i].kind, []).append(i)
    chosen: list[int] = []
    while len(chosen) < min(count, len(problems)):
        for kind in sorted(by_kind):
            if by_kind[kind] and len(chosen) < count:
                chosen.append(by_kind[kind].pop())
    return sorted(chosen)


def even_shares(problems: Sequence[PrototypeProblem]) -> Float64[np.ndarray, "P"]:
    """Return [P] weights, 1 together, by which all kinds of networks count alike."""
    counts = Counter(problem.kind for problem in problems)
    return np.array([1 / counts[problem.kind] / len(counts) for problem in problems])


def regrets(
    seconds: Float64[np.ndarray, "P C"], best: Float64[np.ndarray, "P"]
) -> Float64[np.ndarray, "P C"]:
    """Return [P, C] logarithms of seconds over the best known, at most `WORST`."""
    known = np.minimum(best, seconds.min(axis=1))
    with np.errstate(invalid="ignore"):
        regret = np.log(seconds / known[:, None])
    return np.where(np.isfinite(regret), np.minimum(regret, WORST), WORST)


def greedy_cover(
    regret: Float64[np.ndarray, "P C"], share: Float64[np.ndarray, "P"], count: int,
    given: Sequence[int] = (),
) -> list[int]:  # fmt: skip
    """Return the columns of a greedy cover, the one that is best alone first.

    Args:
        regret: [P, C] of columns on problems.
        share: [P] weight of each problem.
        count: columns of the cover, at most.
        given: columns that are among them in any case.
    """
    more = _covered(regret, share, count - len(given), list(given))
    chosen = [*given, *more]
    return [chosen[i] for i in _covered(regret[:, chosen], share, count, [])] if given else more


def _covered(
    regret: Float64[np.ndarray, "P C"],
    share: Float64[np.ndarray, "P"],
    count: int,
    known: list[int],
) -> list[int]:
    """At most ``count`` columns that improve the best of those ``known`` the most, one by one."""
    best, chosen = regret[:, known].min(axis=1, initial=WORST), []
    left: Bool[np.ndarray, "C"] = np.ones(regret.shape[1], np.bool_)
    left[known] = False
    for _ in range(min(count, int(left.sum()))):
        value = share @ np.minimum(best[:, None], regret)
        column = int(np.argmin(np.where(left, value, np.inf)))
        left[column] = False
        chosen.append(column)
        best = np.minimum(best, regret[:, column])
    return chosen


def candidates(
    problems: Sequence[PrototypeProblem],
    found: Sequence[Searched],
    given: Float32[np.ndarray, "G W"],
    count: int,
    seed: int,
) -> Float32[np.ndarray, "C W"]:
    """Return the best weights of ``count`` problems, and those ``given`` before them.

    Raises:
        TrainingError: there is no problem with a plan.
    """
    if not problems:
        raise TrainingError("train: no problem has anything to decide and a plan; give others")
    chosen = spread_choice(problems, count, seed)
    best = np.stack([found[i].deviations[0] for i in chosen])
    return np.concatenate([given, best])
