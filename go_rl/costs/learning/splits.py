"""Splits of examples into those learned from and those that judge: the ones that all predictors
share.

Names are TenSet's (``within_task``, ``by_task``, ``by_target``) and CDMPP's (by model: networks
held out; by device). Shares are those of CDMPP, section 7.1: 8 : 1 : 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core import TrainingError
from go_rl.core.errors import nearest

SHARES = (0.8, 0.1, 0.1)
"""Shares of training, validation and test."""
HELD_OUT = ("resnet50", "mobilenet-v2", "bert-tiny")
"""Networks that CDMPP holds out."""


def _none() -> Int64[np.ndarray, "none"]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class DataSplit:
    """Rows of a set of examples, by what they are for; no row is in two parts."""

    train: Int64[np.ndarray, "A"]
    validation: Int64[np.ndarray, "V"]
    test: Int64[np.ndarray, "E"]
    """Test examples, of the same networks, targets and devices as those learned from."""
    held_out: Int64[np.ndarray, "H"] = field(default_factory=_none)
    """Examples of held-out networks, targets or devices, which judge generalisation."""
    adapt: Int64[np.ndarray, "B"] = field(default_factory=_none)
    """Examples of a held-out target or device, from which those measured to adapt may be
    sampled."""


def within_task(task: Int[np.ndarray, "P"], seed: int = 0) -> DataSplit:
    """Return the programs of each task divided by `SHARES` (small tasks: at least to train)."""
    rng = np.random.default_rng(seed)
    parts: list[list[np.ndarray]] = [[], [], []]
    for number in np.unique(task):
        rows = rng.permutation(np.flatnonzero(task == number))
        # Of 5 rows, 0.5 are for validation: chance decides, so that small tasks have a share too.
        ends = np.floor(np.cumsum(SHARES[::-1]) * len(rows) + rng.random()).astype(int)
        few = np.split(rows, np.minimum(ends[:2], len(rows) - 1))
        for part, some in zip(parts, reversed(few), strict=True):
            part.append(some)
    return _checked("within_task", *(np.sort(np.concatenate(part)) for part in parts))


def by_task(task: Int[np.ndarray, "P"], seed: int = 0) -> DataSplit:
    """Return the programs of whole tasks, divided by `SHARES`."""
    return _checked("by_task", *_of_tasks(task, np.arange(len(task)), seed))


def by_target(
    task: Int[np.ndarray, "P"], target: Int[np.ndarray, "P"], held_out: int, seed: int = 0
) -> DataSplit:
    """Return all targets but one to learn from, its tasks divided by `SHARES`; of the one held out,
    the programs of test tasks judge, and those of training tasks may adapt (CDMPP, section 7.1).

    Args:
        task: [P] number of the task.
        target: [P] number of the target, or of the device.
        held_out: number of the target to be held out.
        seed: draws the tasks.

    Raises:
        TrainingError: a part is empty.
    """
    if not (target == held_out).any():
        raise TrainingError(f"by_target: target {held_out} has no measurements")
    if (target == held_out).all():
        raise TrainingError("by_target: no other target has measurements to learn from")
    train, validation, test = _of_tasks(task, np.arange(len(task)), seed)
    own, other = (target == held_out), (target != held_out)
    return _checked(
        "by_target", train[other[train]], validation[other[validation]], test[other[test]],
        held_out=test[own[test]], adapt=train[own[train]],
    )  # fmt: skip


def by_model(
    task: Int[np.ndarray, "P"],
    networks: Sequence[Sequence[str]],
    held_out: Sequence[str] = HELD_OUT,
    seed: int = 0,
) -> DataSplit:
    """Return the programs of networks that are not held out, divided by `SHARES`, and those of the
    networks that are. A task of both is held out.

    Args:
        task: [P] number of the task.
        networks: [T] every network that has the task.
        held_out: networks.
        seed: draws the programs.

    Raises:
        TrainingError: a part is empty, or nothing was measured of a network that is held out.
    """
    known = sorted({name for some in networks for name in some})
    for name in held_out:
        if name not in known:
            raise TrainingError(f"by_model: no program of a network {name!r}{nearest(name, known)}")
    out = np.array([bool(set(some) & set(held_out)) for some in networks])[task]
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(~out))
    return _checked("by_model", *_divided(rows), held_out=np.flatnonzero(out))


def _of_tasks(
    task: Int[np.ndarray, "P"], rows: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(np.unique(task[rows]))
    train, validation, test = (rows[np.isin(task[rows], some)] for some in _divided(order))
    return train, validation, test


def _divided(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ends = np.round(np.cumsum(SHARES[:2]) * len(rows)).astype(int)
    train, validation, test = (np.sort(part) for part in np.split(rows, ends))
    return train, validation, test


def _checked(
    name: str, train: np.ndarray, validation: np.ndarray, test: np.ndarray, **others: np.ndarray
) -> DataSplit:
    """The split; a `TrainingError` if a part is empty."""
    parts = {"train": train, "validation": validation, "test": test, **others}
    for part, rows in parts.items():
        if not len(rows):
            raise TrainingError(
                f"split {name}: its part {part!r} is empty; measure more tasks or programs"
            )
    return DataSplit(train, validation, test, **others)
