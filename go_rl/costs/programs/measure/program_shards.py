"""`add_shard`: the measurements of one more processor in a data set of several.

The programs are kept once (`go_rl.costs.programs.measure.data_file`). Their numbers never change:
what a processor measured that none before had is appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from go_rl.core import ReadError
from go_rl.costs.programs.features import join_asts
from go_rl.costs.programs.measure.data import ROWS, ProgramData
from go_rl.costs.programs.measure.data_file import load_programs, save_programs, save_times

T = TypeVar("T")


def add_shard(path: Path, data: ProgramData) -> None:
    """Write the measurements of one processor, and extend the programs by what is new; a shard of
    this processor that there is already is replaced.

    Args:
        path: file of the programs; made if there is none.
        data: all measurements of the processor (`go_rl.costs.programs.measure.data`).

    Raises:
        CheckpointError: a file cannot be written.
        ReadError: the data are of several devices, or the file is damaged.
    """
    devices = sorted({each.device for each in data.targets})
    if len(devices) != 1:
        raise ReadError(f"{data.name}: a shard is of one device, not of {', '.join(devices)}")
    known = load_programs(path, ()) if path.exists() else _none_of(data, path.stem)
    extended, numbers = _extended(known, data)
    rows = {name: getattr(data, name) for name in ROWS}
    rows |= {name: number[rows[name]] for name, number in numbers.items()}
    told = dict(data.provenance)
    told["measured"] = {devices[0]: told.get("measured", "")}
    save_programs(extended, path)
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    save_times(folder / f"{devices[0]}.npz", replace(data, provenance=told), rows)


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
        asts=join_asts([known.asts, data.asts.take(fresh)]) if len(fresh) else known.asts,
    )  # fmt: skip
    return extended, {"task": task, "nest": nest, "trace": trace}


def _appended(known: Sequence[T], more: Sequence[T]) -> tuple[list[T], np.ndarray]:
    """Return the known things and the new ones behind them, and where each of ``more`` is."""
    place: dict[Any, int] = {each: i for i, each in enumerate(known)}
    for each in more:
        place.setdefault(each, len(place))
    return list(place), np.array([place[each] for each in more], np.int64)
