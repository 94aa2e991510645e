"""`ProgramInputs`, `ProgramExamples`: tensor programs as arrays, and what was measured of them.

Every learner of programs reads these classes: boosted trees the sums of the leaf vectors
(`PackedAsts.sums`), recursive networks the loop nests (``nests[nest]``), networks of schedule
primitives the traces (``traces[trace]``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log2, nan

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from go_rl.core import TrainingError
from go_rl.costs.devices.device_features import CDMPP_FEATURES, device_numbers
from go_rl.costs.learning.metrics import least_of_group, medians_of_groups
from go_rl.costs.programs.features import PackedAsts, compact_ast, pack_asts
from go_rl.costs.programs.measure.data import (
    MachineNumbers,
    MachineTable,
    ProgramData,
    ProgramTarget,
)
from go_rl.costs.programs.nests import LoopNest, nest_to_json, parallel_launches
from go_rl.costs.programs.workloads import TensorTask

VECTOR_BYTES = {"x86-64": 16, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}
"""Width of the vectors that code for a level of x86-64 may use."""
TARGET_FEATURES = (*CDMPP_FEATURES, "code_vector_bytes")
"""Numbers of a target: `go_rl.costs.devices.device_features` of its device, and `VECTOR_BYTES`
of its code."""


@dataclass(frozen=True, eq=False)
class ProgramInputs:
    """``P`` programs of ``T`` tasks, each on one of ``G`` targets."""

    asts: PackedAsts
    """[P] leaf vectors, orderings and where those of each program begin."""
    task: Int64[np.ndarray, "P"]
    """[P] number of the task."""
    target: Int64[np.ndarray, "P"]
    """[P] number of the target."""
    tasks: tuple[TensorTask | None, ...]
    """[T] None: it is not known, as in CDMPP's feature files."""
    networks: tuple[tuple[str, ...], ...]
    """[T] every network that has the task."""
    targets: tuple[ProgramTarget, ...]
    """[G] targets of the records."""
    devices: Float64[np.ndarray, "G D"]
    """[G, D] `TARGET_FEATURES` of each target, log2 of SI units; NaN where unknown."""
    nest: Int64[np.ndarray, "P"]
    """[P] number of the loop nest."""
    trace: Int64[np.ndarray, "P"]
    """[P] number of the schedule."""
    nests: tuple[str, ...] = ()
    """Loop nests as JSON (`go_rl.costs.programs.nests.nest_from_json`); empty where only features
    are known."""
    traces: tuple[str, ...] = ()
    """Schedules, as TVM prints them; empty where they are not known."""
    machine: MachineTable = field(default_factory=dict)
    """Numbers of machine code, as far as it was read; by text, so that it holds for any selection
    of the programs."""

    @property
    def num_programs(self) -> int:
        """Number of programs ``P``."""
        return len(self.task)

    @property
    def group(self) -> Int64[np.ndarray, "P"]:
        """[P] one number for each task on a target: programs that compare."""
        return self.task * len(self.targets) + self.target

    @property
    def leaves(self) -> Int64[np.ndarray, "P"]:
        """[P] leaves of each program."""
        return self.asts.leaves

    @cached_property
    def device_features(self) -> Float64[np.ndarray, "P D"]:
        """[P, D] features of each program's device."""
        return self.devices[self.target]

    @cached_property
    def launches(self) -> Float64[np.ndarray, "P"]:
        """[P] how often each program enters a parallel loop; 0 where loop nests are not known."""
        if not self.nests:
            return np.zeros(self.num_programs)
        distinct, place = np.unique(self.nest, return_inverse=True)
        counts = [parallel_launches(self.nests[number]) for number in distinct.tolist()]
        return np.array(counts, np.float64)[place]

    @property
    def machine_code(self) -> list[MachineNumbers | None]:
        """[P] numbers of each program's machine code; None: it was not read."""
        if not self.nests:
            return [None] * self.num_programs
        levels = [target.codegen for target in self.targets]
        pairs = zip(self.nest.tolist(), self.target.tolist(), strict=True)
        return [self.machine.get((self.nests[nest], levels[target])) for nest, target in pairs]

    def take(self, which: Int[np.ndarray, "J"]) -> ProgramInputs:
        """Return some programs, in this order; tasks and targets keep their numbers."""
        return replace(
            self,
            asts=self.asts.take(which),
            **{name: getattr(self, name)[which] for name in ("task", "target", "nest", "trace")},
        )


@dataclass(frozen=True, eq=False)
class ProgramExamples:
    """``P`` programs and their measured seconds."""

    inputs: ProgramInputs
    seconds: Float64[np.ndarray, "P"]
    spread: Float64[np.ndarray, "P"]
    """[P] relative half-width of their 95 % interval."""
    name: str = "programs"
    dropped: tuple[tuple[str, int], ...] = ()
    """Measurements that `KeepRules` left out, by rule."""

    def take(self, which: Int[np.ndarray, "J"]) -> ProgramExamples:
        """Return some of them, in this order."""
        return replace(
            self,
            inputs=self.inputs.take(which),
            seconds=self.seconds[which],
            spread=self.spread[which],
        )

    def on_devices(self, wanted: Callable[[str], bool]) -> ProgramExamples:
        """Return those that were measured on wanted devices, in this order."""
        of_target = np.array([wanted(target.device) for target in self.inputs.targets])
        return self.take(np.flatnonzero(of_target[self.inputs.target]))


def with_machine_code(examples: ProgramExamples) -> ProgramExamples:
    """Return the programs whose machine code was read.

    Raises:
        TrainingError: there is none.
    """
    known = np.array([row is not None for row in examples.inputs.machine_code], np.bool_)
    if not known.any():
        raise TrainingError(
            f"{examples.name}: the machine code of no program is known; use records of go-rl "
            "measure programs, or a data set that has it (programs-3)"
        )
    dropped = (*examples.dropped, ("without machine code", int((~known).sum())))
    return replace(examples.take(np.flatnonzero(known)), dropped=dropped)


@dataclass(frozen=True)
class KeepRules:
    """Rules that select the measurements that are examples. Invalid programs have no time and never
    are."""

    most_spread: float = 1.0
    """Noisy: a wider 95 % interval, half its width relative to the seconds."""
    most_away: float = 0.7
    """Noisy: others had the core for a larger share of the time."""
    slowest: float = 1000.0
    """Too slow: more than this many times the task's fastest program on the target. Loops without a
    schedule, of which networks that nobody tuned consist, may be some hundreds of times slower."""
    least_programs: int = 2
    """Too few: tasks with fewer distinct programs on a target."""

    def __post_init__(self) -> None:
        if not (self.most_spread > 0 and 0 < self.most_away <= 1 and self.slowest > 1):
            raise TrainingError(
                "programs: most_spread must be above 0, most_away in (0, 1] and slowest above 1"
            )
        if self.least_programs < 1:
            raise TrainingError(f"programs: least_programs must be >= 1, not {self.least_programs}")


def examples_of(
    data: ProgramData, rules: KeepRules | None = None, sheets: str | None = None
) -> ProgramExamples:
    """Return what of measured programs is learned from.

    Equal programs of a task on a target, drawn several times, are one example: the median of their
    seconds.

    Args:
        data: what was measured.
        rules: what is dropped.
        sheets: JSON file of device features that extends the table; None: the table alone.

    Raises:
        TrainingError: nothing is left.
        DeviceError: the file is malformed.
    """
    rules = rules or KeepRules()
    quiet = (data.spread <= rules.most_spread) & (data.away <= rules.most_away)
    rows = np.flatnonzero(quiet)
    number = data.group[rows] * len(data.nests) + data.nest[rows]
    first, seconds, spread = medians_of_groups(number, data.seconds[rows], data.spread[rows])
    rows = rows[first]
    slow = seconds > rules.slowest * least_of_group(seconds, data.group[rows])
    few = _group_sizes(data.group[rows], ~slow) < rules.least_programs
    kept = np.flatnonzero(~slow & ~few)
    dropped = (
        ("noisy", int((~quiet).sum())),
        ("drawn again", int(quiet.sum()) - len(rows)),
        ("too slow", int(slow.sum())),
        ("too few of their task", int((few & ~slow).sum())),
    )
    if not len(kept):
        raise TrainingError(
            f"{data.name}: no program is left to learn from; of {len(data.seconds)} measurements "
            + ", ".join(f"{count} are {why}" for why, count in dropped)
        )
    which = rows[kept]
    inputs = ProgramInputs(
        asts=data.asts.take(data.nest[which]),
        task=data.task[which], target=data.target[which], tasks=data.tasks,
        networks=data.networks, targets=data.targets,
        devices=np.array([target_numbers(each, sheets) for each in data.targets]),
        nest=data.nest[which], trace=data.trace[which], nests=data.nests, traces=data.traces,
        machine=data.machine,
    )  # fmt: skip
    return ProgramExamples(inputs, seconds[kept], spread[kept], data.name, dropped)


def target_numbers(target: ProgramTarget, sheets: str | None = None) -> list[float]:
    """Return `TARGET_FEATURES` of a target, log2; NaN where unknown."""
    width = VECTOR_BYTES.get(target.codegen)
    return [*device_numbers(target.device, sheets), log2(width) if width else nan]


def _group_sizes(
    group: Int64[np.ndarray, "J"], counted: Bool[np.ndarray, "J"]
) -> Int64[np.ndarray, "J"]:
    _, place = np.unique(group, return_inverse=True)
    size = np.bincount(place, weights=counted, minlength=place.max() + 1 if len(place) else 0)
    return size[place].astype(np.int64)


def programs_of_task(
    asts: PackedAsts, task: TensorTask | None, target: ProgramTarget
) -> ProgramInputs:
    """Return programs of one task on one target, of which features alone are known; None: nor is
    the task."""
    zero = np.zeros(asts.num_programs, np.int64)
    return ProgramInputs(
        asts=asts, task=zero, target=zero, tasks=(task,), networks=((),), targets=(target,),
        devices=np.array([target_numbers(target)]), nest=zero, trace=zero,
    )  # fmt: skip


def programs_of_nests(
    nests: Sequence[LoopNest], target: ProgramTarget, task: Int64[np.ndarray, "P"] | None = None
) -> ProgramInputs:
    """Return programs of which the loop nests are known, and of their tasks nothing but which are
    equal.

    Args:
        nests: one for each program.
        target: of all of them.
        task: [P] numbers of their tasks; None: they are of one task.

    Raises:
        NestError: a nest has no statement that computes.
    """
    asts = pack_asts([compact_ast(nest) for nest in nests])
    task = np.zeros(len(nests), np.int64) if task is None else task
    count = int(task.max(initial=0)) + 1
    return replace(
        programs_of_task(asts, None, target), task=task, tasks=(None,) * count,
        networks=((),) * count, nest=np.arange(len(nests)),
        nests=tuple(nest_to_json(nest) for nest in nests),
    )  # fmt: skip
