"""`add_shard`: the measurements of one more processor in a data set of several.

The programs are kept once (`go_rl.costs.programs.measure.data_file`). Their numbers never change:
what a processor measured that none before had is appended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from go_rl.core import ReadError
from go_rl.costs.programs.features import join_asts
from go_rl.costs.programs.measure.data import ROWS, ProgramData
from go_rl.costs.programs.measure.data_file import (
    load_programs,
    save_programs,
    save_times,
    shard_paths,
)

PROGRAM = ("task", "target", "nest")
"""Rows that say which program was measured."""
T = TypeVar("T")


def add_shard(path: Path, data: ProgramData) -> None:
    """Write the measurements of one processor, and extend the programs by what is new. Programs
    that the processor's shard has and ``data`` has not stay in it.

    Args:
        path: file of the programs; made if there is none.
        data: measurements of the processor (`go_rl.costs.programs.measure.data`).

    Raises:
        CheckpointError: a file cannot be written.
        ReadError: the data are of several devices, or the file is damaged.
    """
    devices = sorted({each.device for each in data.targets})
    if len(devices) != 1:
        raise ReadError(f"{data.name}: a shard is of one device, not of {', '.join(devices)}")
    device = devices[0]
    known = load_programs(path, ()) if path.exists() else _none_of(data, path.stem)
    extended, numbers = _extended(known, data)
    rows = {name: getattr(data, name) for name in ROWS}
    rows |= {name: number[rows[name]] for name, number in numbers.items()}
    told = {**data.provenance, "measured": {device: data.provenance.get("measured", "")}}
    targets, failures = data.targets, Counter(data.failures)
    if device in shard_paths(path):
        before = load_programs(path, [device])
        targets = tuple(dict.fromkeys((*before.targets, *data.targets)))
        rows["target"] = np.array([targets.index(each) for each in data.targets])[rows["target"]]
        rows = _joined(rows, {name: getattr(before, name) for name in ROWS})
        failures |= Counter(before.failures)
        told["measured"][device] = _days(before.provenance["measured"][device], told, device)
    save_programs(extended, path)
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    shard = replace(data, targets=targets, failures=dict(sorted(failures.items())), provenance=told)
    save_times(folder / f"{device}.npz", shard, rows)


def _joined(rows: dict[str, np.ndarray], before: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return rows, and behind them those of before that are of other programs."""
    new = set(zip(*(rows[name].tolist() for name in PROGRAM), strict=True))
    old = zip(*(before[name].tolist() for name in PROGRAM), strict=True)
    kept = np.array([each not in new for each in old], bool)
    return {name: np.concatenate([rows[name], before[name][kept]]) for name in rows}


def _days(before: str, told: dict[str, Any], device: str) -> str:
    """Return the first and the last day of both."""
    days = sorted({*before.split(" to "), *told["measured"][device].split(" to ")} - {""})
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _none_of(data: ProgramData, name: str) -> ProgramData:
    """Return a data set without programs."""
    none: dict[str, Any] = {row: getattr(data, row)[:0] for row in ROWS}
    return replace(
        data, name=name, tasks=(), networks=(), targets=(), nests=(), traces=(),
        asts=data.asts.take(np.zeros(0, np.int64)), failures={}, provenance={}, **none,
    )  # fmt: skip


def _extended(known: ProgramData, data: ProgramData) -> tuple[ProgramData, dict[str, np.ndarray]]:
    """Return the known programs and, behind them, those that are new; and the numbers there of the
    tasks, nests and traces of ``data``."""
    tasks, task = _appended(known.tasks, data.tasks)
    nests, nest = _appended(known.nests, data.nests)
    traces, trace = _appended(known.traces, data.traces)
    fresh = np.flatnonzero(nest >= len(known.nests))
    networks = [set(some) for some in known.networks]
    networks += [set() for _ in tasks[len(known.tasks) :]]
    for number, some in zip(task, data.networks, strict=True):
        networks[number] |= set(some)
    extended = replace(
        known, tasks=tuple(tasks), nests=tuple(nests), traces=tuple(traces),
        networks=tuple(tuple(sorted(some)) for some in networks),
        machine={**known.machine, **data.machine},
        asts=join_asts([known.asts, data.asts.take(fresh)]) if len(fresh) else known.asts,
    )  # fmt: skip
    return extended, {"task": task, "nest": nest, "trace": trace}


def _appended(known: Sequence[T], more: Sequence[T]) -> tuple[list[T], np.ndarray]:
    """Return the known things and the new ones behind them, and where each of ``more`` is."""
    place: dict[Any, int] = {each: i for i, each in enumerate(known)}
    for each in more:
        place.setdefault(each, len(place))
    return list(place), np.array([place[each] for each in more], np.int64)
