"""What tuning a network's programs found: `TunedNetwork`, and the folder that it is kept in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from go_rl.tuning.config import TuneProgramsConfig, TuningConfig
from go_rl.tuning.loop.nouns import Schedule, TunedOperator
from go_rl.tuning.loop.result_folder import SUMMARY, write_results
from go_rl.tuning.loop.tuning_state import TrialBatch

SCHEDULES, MODULE = "schedules.json", "module.so"
MS = 1e3


@dataclass(frozen=True)
class LatencyPoint:
    """The network with the best schedules so far, as measured while tuning, from here on."""

    minutes: float
    """Of tuning, those of earlier runs in the folder included."""
    seconds: float
    """Sum of the operators' best and of what is not tuned."""
    trials: int
    """So far."""


@dataclass(frozen=True)
class OperatorOutcome:
    """One operator after tuning."""

    operator: TunedOperator
    schedule: Schedule | None
    """None: no schedule was faster than the loops as they are."""
    seconds: float
    """Of one run under it, as measured while tuning."""
    untuned_seconds: float
    trials: int
    share: float
    """Share of the tuning time."""
    reason: str = ""
    """Why it has no schedule; "": it has one."""


@dataclass(frozen=True)
class LeftOperator:
    """One operator that is not tuned."""

    operator: TunedOperator
    reason: str
    seconds: float
    """Of one run in the module, about; 0: it has no time."""
    schedule: Schedule | None
    """A light schedule, where one is faster than the loops as they are."""


@dataclass(frozen=True)
class RivalTime:
    """The network in another implementation, on the same core."""

    name: str
    latency_ms: float


@dataclass(frozen=True, eq=False)
class TunedNetwork:
    """A tuned network."""

    model: str
    target: str
    scheduler: str
    tuner: str
    operators: tuple[OperatorOutcome, ...]
    left: tuple[LeftOperator, ...]
    """What is not tuned."""
    fixed_seconds: float
    """Of what is not tuned."""
    curve: tuple[LatencyPoint, ...]
    minutes: float
    """Of tuning, those of earlier runs in the folder included."""
    run_minutes: float
    """Of this run, by the wall, from the import to the written module."""
    trials: int
    """Measured for this folder, in all of its runs."""
    resumed_trials: int
    """Those among them that were known when this run began; and those that the records knew."""
    failed_trials: int
    """Those that have no time."""
    untuned_ms: float
    """Of the whole network with TVM's default schedules, the loops as they are under LLVM."""
    latency_ms: float
    """Of the module written, visited in turn with the untuned one and rivals."""
    rivals: tuple[RivalTime, ...]
    max_relative_error: float
    """Of the module's results against the model's, on random operands; infinite where one is finite
    and the other is not, which JSON has as null."""
    notes: tuple[str, ...]

    @property
    def untuned_reasons(self) -> dict[str, list[TunedOperator]]:
        """Operators without a schedule of a tuner's, by the reason."""
        found: dict[str, list[TunedOperator]] = {}
        for each in (*self.operators, *self.left):
            if each.reason:
                found.setdefault(each.reason, []).append(each.operator)
        return found

    @property
    def speedup(self) -> float:
        """Untuned over tuned."""
        return self.untuned_ms / self.latency_ms


def latency_curve(
    batches: Iterable[TrialBatch],
    operators: Sequence[TunedOperator],
    untuned: Sequence[float],
    fixed: float,
) -> Iterator[LatencyPoint]:
    """Yield the latency at the start, and whenever it falls.

    Args:
        batches: of the run, in order.
        operators: of the network.
        untuned: seconds of one run of each.
        fixed: seconds of what is not tuned.
    """
    best, elapsed, trials = list(untuned), 0.0, 0

    def point() -> LatencyPoint:
        total = fixed + sum(x.repeats * s for x, s in zip(operators, best, strict=True))
        return LatencyPoint(elapsed / 60.0, total, trials)

    yield (last := point())
    for batch in batches:
        elapsed, trials = elapsed + batch.seconds, trials + len(batch.trials)
        times = [t.seconds for t in batch.trials if t.seconds is not None]
        best[batch.operator] = min([best[batch.operator], *times])
        if (now := point()).seconds < last.seconds:
            yield (last := now)


def summary_document(tuned: TunedNetwork, config: TuningConfig) -> dict[str, Any]:
    """Return what ``tuned.json`` holds, and ``--json`` prints."""
    error = tuned.max_relative_error
    return {
        "model": tuned.model, "target": tuned.target, "scheduler": tuned.scheduler,
        "tuner": tuned.tuner, "trials": tuned.trials, "resumed_trials": tuned.resumed_trials,
        "failed_trials": tuned.failed_trials, "untuned_ms": tuned.untuned_ms,
        "latency_ms": tuned.latency_ms, "speedup": tuned.speedup,
        "max_relative_error": error if isfinite(error) else None, "minutes": tuned.minutes,
        "run_minutes": tuned.run_minutes,
        "rivals": [asdict(each) for each in tuned.rivals],
        "fixed_ms": MS * tuned.fixed_seconds,
        "operators": [
            {
                "name": each.operator.name, "uses": each.operator.repeats,
                "flops": each.operator.flops, "untuned_ms": MS * each.untuned_seconds,
                "best_ms": MS * each.seconds, "trials": each.trials, "share": each.share,
                "schedule": None if each.schedule is None else each.schedule.key,
                "left_untuned": each.reason or None,
            }
            for each in tuned.operators
        ],
        "left_untuned": [
            {
                "name": each.operator.name, "uses": each.operator.repeats,
                "flops": each.operator.flops, "ms": MS * each.seconds, "reason": each.reason,
                "light_schedule": None if each.schedule is None else each.schedule.key,
            }
            for each in tuned.left
        ],
        "notes": list(tuned.notes), "config": asdict(config),
    }  # fmt: skip


def schedules_document(tuned: TunedNetwork) -> dict[str, Any]:
    """Return what ``schedules.json`` holds: traces of TVM by workload, those that the module has,
    and of the operators without one the reason."""
    everything = (*tuned.operators, *tuned.left)
    return {
        "target": tuned.target,
        "schedules": {
            each.operator.workload: {
                "operator": each.operator.name, "key": each.schedule.key,
                "trace": each.schedule.document,
            }
            for each in everything
            if each.schedule is not None
        },
        "left_untuned": {
            each.operator.workload: {"operator": each.operator.name, "reason": each.reason}
            for each in everything
            if each.reason
        },
    }  # fmt: skip


def write_tuned_network(tuned: TunedNetwork, config: TuneProgramsConfig, folder: Path) -> None:
    """Write the summary, schedules and curve, each aside and renamed."""
    documents = {SCHEDULES: schedules_document(tuned), SUMMARY: summary_document(tuned, config)}
    write_results(folder, tuned.curve, documents)
