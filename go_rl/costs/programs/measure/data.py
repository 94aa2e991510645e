"""`ProgramData`: measured tensor programs with their features, for models to learn from.

`gather_programs` makes it of a folder of `go_rl.costs.programs.measure.collect`;
`go_rl.costs.programs.measure.data_file` keeps it as one small file. Data sets that ship with the
package lie in ``go_rl/costs/timing/data``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int64

from go_rl.core import ReadError, ZooError
from go_rl.costs.programs.features import PackedAsts
from go_rl.costs.programs.measure.collect import MACHINE, NEST, TASK, TRACE
from go_rl.costs.programs.measure.features_file import nest_features
from go_rl.costs.programs.workloads import TaskError, TensorTask, network_tasks
from go_rl.costs.timing.collector import MODEL, SLOWED, failures_of
from go_rl.costs.timing.core_speed import pace_path, read_pace
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.runtime.records import RECORDS, Record, RecordStore

ROWS = ("task", "target", "draw", "nest", "trace", "seconds", "spread", "away")
"""Arrays of one number a measurement."""
MachineNumbers = Sequence[float] | Float32[np.ndarray, "numbers"]
"""Numbers of a program's machine code (`MACHINE_NAMES`)."""
MachineTable = Mapping[tuple[str, str], MachineNumbers]
"""The same of several, by loop nest (JSON) and level of x86-64."""
FEW_CALLS = 60
"""Timed calls below which their median counts."""


@dataclass(frozen=True)
class ProgramTarget:
    """A processor, and the level of x86-64 for which code was compiled there."""

    device: str
    """Name of the machine in the records."""
    codegen: str
    """A target of the code, not a device; "" where there is no such choice."""

    @property
    def title(self) -> str:
        """Device and code target, for people."""
        return f"{self.device} {self.codegen}".strip()


@dataclass(frozen=True, eq=False)
class ProgramData:
    """``R`` measurements of ``N`` distinct programs of ``T`` tasks on ``G`` targets."""

    name: str
    tasks: tuple[TensorTask, ...]
    networks: tuple[tuple[str, ...], ...]
    """[T] every network that has the task."""
    targets: tuple[ProgramTarget, ...]
    """[G] targets of the records."""
    nests: tuple[str, ...]
    """[N] distinct loop nests (JSON, `go_rl.costs.programs.nests.nest_from_json`)."""
    traces: tuple[str, ...]
    """Distinct schedules, as TVM prints them."""
    asts: PackedAsts
    """[N] features of the nests."""
    task: Int64[np.ndarray, "R"]
    target: Int64[np.ndarray, "R"]
    draw: Int64[np.ndarray, "R"]
    """[R] number of the random schedule of the task; those of further seeds follow."""
    nest: Int64[np.ndarray, "R"]
    trace: Int64[np.ndarray, "R"]
    """[R] number in ``traces``."""
    seconds: Float64[np.ndarray, "R"]
    spread: Float64[np.ndarray, "R"]
    """[R] relative half-width of their 95 % interval."""
    away: Float64[np.ndarray, "R"]
    """[R] share of the time on the wall in which others had the core."""
    failures: Mapping[str, int]
    """Reasons why a measurement has no time, and how often."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Provenance of the data: processor of each device, versions of tools, rules."""
    machine: MachineTable = field(default_factory=dict)
    """Numbers of machine code, as far as it was read."""

    @property
    def group(self) -> Int64[np.ndarray, "R"]:
        """[R] one number for each task on a target: programs that compare."""
        return self.task * len(self.targets) + self.target


def gather_programs(
    folder: Path, name: str = "programs", most_slowed: float = inf, most_away: float = 1.0
) -> ProgramData:
    """Return the measurements of programs in a folder; features that were computed before are read
    from `go_rl.costs.programs.measure.features_file.FEATURES`.

    Args:
        folder: of the records.
        name: of the data.
        most_slowed: records are left out beside which the fixed work
            (`go_rl.costs.timing.core_speed`) took more than this many times as long as at the
            reference speed: a busy neighbour of a virtual core slows that work more than programs.
        most_away: records are left out during which others had the core for a larger share.

    Raises:
        ReadError: no program has a time there, or a record is none of a program.
        RecordError: the records cannot be read.
    """
    with RecordStore(folder / RECORDS) as store:
        records = [r for target in store.targets() for r in store.find(target) if r.round == 0]
    mine = [record for record in records if TASK in record.details]
    timed = [record for record in mine if record.seconds is not None]
    if not timed:
        raise ReadError(
            f"{folder}: no tensor program has a time ({len(records)} records); a folder of go-rl "
            "measure programs is needed"
        )
    every = Counter(record.target for record in timed)
    timed = [r for r in timed if float(r.details.get(SLOWED, 0.0)) <= most_slowed]
    timed = [r for r in timed if float(r.details.get("away", 0.0)) <= most_away]
    left_out = dict(every - Counter(record.target for record in timed))
    if not timed:
        raise ReadError(
            f"{folder}: every tensor program was timed beside fixed work that took more than "
            f"{most_slowed} (most_slowed) times as long as at the reference speed, or while others "
            f"had the core for more than {most_away} (most_away) of the time"
        )
    nests = _numbers([_text(record, NEST) for record in timed])
    processors = {
        device: read_pace(path).processor
        for device in sorted({record.target for record in timed})
        if (path := pace_path(folder, device)).exists()
    }
    return ProgramData(
        name=name,
        nests=tuple(nests),
        asts=nest_features(tuple(nests), folder),
        failures=failures_of(mine),
        provenance={"processors": processors, "measured": _days(timed), "left_out": left_out},
        machine={
            (_text(r, NEST), _target(r).codegen): tuple(r.details[MACHINE])
            for r in timed
            if MACHINE in r.details
        },
        **_columns(timed, nests),
    )


def networks_of(
    tasks: Sequence[TensorTask], known: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], ...]:
    """Return every network that has each task: those known to have one are searched for all."""
    found = {task: set(some) for task, some in zip(tasks, known, strict=True)}
    for network in sorted({name for some in known for name in some}):
        try:
            graph = zoo_graph(network)
        except ZooError:  # measured from a graph that is not in the zoo
            continue
        for task in network_tasks(graph):
            if task in found:
                found[task].add(network)
    return tuple(tuple(sorted(found[task])) for task in tasks)


def _columns(records: Sequence[Record], nests: Mapping[str, int]) -> dict[str, Any]:
    """Columns of `ProgramData`, from records that have a time."""
    first = {_text(record, TASK): record for record in reversed(records)}
    task = {text: i for i, text in enumerate(sorted(first))}
    tasks = tuple(_task(first[text]) for text in task)
    known = [(str(first[text].details.get(MODEL, "")),) for text in task]
    of_record = [_target(record) for record in records]
    targets = sorted(set(of_record), key=lambda each: (each.device, each.codegen))
    traces = _numbers([_text(record, TRACE) for record in records])
    about = [record.details for record in records]
    return {
        "tasks": tasks,
        "networks": networks_of(tasks, known),
        "targets": tuple(targets),
        "traces": tuple(traces),
        "task": np.array([task[each[TASK]] for each in about], np.int64),
        "target": np.array([targets.index(each) for each in of_record], np.int64),
        "draw": np.array([_draw(json.loads(record.setting)) for record in records], np.int64),
        "nest": np.array([nests[each[NEST]] for each in about], np.int64),
        "trace": np.array([traces[each[TRACE]] for each in about], np.int64),
        "seconds": np.array([record_seconds(record) for record in records], np.float64),
        "spread": np.array([record.spread or 0.0 for record in records], np.float64),
        "away": np.array([float(each.get("away", 0.0)) for each in about], np.float64),
    }


def _draw(setting: Mapping[str, Any]) -> int:
    return setting.get("draw", 0) + setting.get("draws", 0) * setting.get("seed", 0)


def record_seconds(record: Record) -> float:
    """Seconds of one run: of `FEW_CALLS` or more the record's own figure, a low quantile; of fewer
    their median, for the least of a few calls is what a disturbance was overestimated in."""
    few = record.repeats < FEW_CALLS and "median" in record.details
    return float(record.details["median"] if few else record.seconds or 0.0)


def _numbers(texts: Sequence[str]) -> dict[str, int]:
    return {text: i for i, text in enumerate(sorted(set(texts)))}


def _text(record: Record, name: str) -> str:
    text = record.details.get(name)
    if not isinstance(text, str):
        raise ReadError(
            f"the record of {record.workload} has no {name}: it is of no tensor program"
        )
    return text


def _task(record: Record) -> TensorTask:
    try:
        task = TensorTask.from_json(_text(record, TASK))
    except TaskError as error:
        raise ReadError(f"the record of {record.workload}: {error}") from error
    if task.workload != record.workload:
        raise ReadError(f"the record of {record.workload} is of another task, {task.title}")
    return task


def _target(record: Record) -> ProgramTarget:
    return ProgramTarget(record.target, str(json.loads(record.setting).get("codegen", "")))


def _days(records: Sequence[Record]) -> str:
    days = sorted(record.measured_at[:10] for record in records)
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
