"""`TunedNetwork`: the result of tuning a network's programs, and the folder it is kept in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from go_rl.core.files.strict_json import parse_json
from go_rl.tuning.config import TuneProgramsConfig, TuningConfig, TuningError
from go_rl.tuning.loop.nouns import Candidate, TunedOperator
from go_rl.tuning.loop.result_folder import SUMMARY, write_results
from go_rl.tuning.loop.tuning_state import TrialBatch

CANDIDATES, MODULE = "candidates.json", "module.so"
MS = 1e3


@dataclass(frozen=True)
class LatencyPoint:
    """Latency of the network with the best candidates so far, as measured while tuning."""

    minutes: float
    """Minutes of tuning, those of earlier runs in the folder included."""
    seconds: float
    """Sum of the operators' best and of what is not tuned."""
    trials: int
    """Trials so far."""


@dataclass(frozen=True)
class OperatorOutcome:
    """Result of one operator after tuning."""

    operator: TunedOperator
    candidate: Candidate | None
    """Best candidate; None: none was faster than the loops as they are."""
    seconds: float
    """Seconds of one run under the candidate, as measured while tuning."""
    untuned_seconds: float
    trials: int
    share: float
    """Share of the tuning time."""
    reason: str = ""
    """Reason why there is no candidate; "": there is one."""


@dataclass(frozen=True)
class LeftOperator:
    """Operator that is not tuned."""

    operator: TunedOperator
    reason: str
    seconds: float
    """Seconds of one run in the module, about; 0: it has no time."""
    candidate: Candidate | None
    """A light candidate, where one is faster than the loops as they are."""


@dataclass(frozen=True)
class RivalTime:
    """Time of the network in another implementation, on the same core."""

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
    """Operators that are not tuned."""
    fixed_seconds: float
    """Seconds of the operators that are not tuned."""
    curve: tuple[LatencyPoint, ...]
    minutes: float
    """Minutes of tuning, those of earlier runs in the folder included."""
    run_minutes: float
    """Minutes of this run, by the wall, from the import to the written module."""
    trials: int
    """Trials measured for this folder, in all of its runs."""
    resumed_trials: int
    """Trials that were known when this run began, and those that the records knew."""
    failed_trials: int
    """Trials that have no time."""
    untuned_ms: float
    """Milliseconds of the whole network with TVM's default schedules, the loops as they are under
    LLVM."""
    latency_ms: float
    """Milliseconds of the module written, visited in turn with the untuned one and rivals."""
    rivals: tuple[RivalTime, ...]
    max_relative_error: float
    """Largest relative error of the module's results against the model's, on random operands;
    infinite where one is finite and the other is not, which JSON has as null."""
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
        """Speed-up: untuned over tuned latency."""
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
                "candidate": None if each.candidate is None else each.candidate.key,
                "left_untuned": each.reason or None,
            }
            for each in tuned.operators
        ],
        "left_untuned": [
            {
                "name": each.operator.name, "uses": each.operator.repeats,
                "flops": each.operator.flops, "ms": MS * each.seconds, "reason": each.reason,
                "light_candidate": None if each.candidate is None else each.candidate.key,
            }
            for each in tuned.left
        ],
        "notes": list(tuned.notes), "config": asdict(config),
    }  # fmt: skip


def candidates_document(tuned: TunedNetwork) -> dict[str, Any]:
    """Return what ``candidates.json`` holds: traces of TVM by workload, those that the module has,
    and of the operators without one the reason."""
    everything = (*tuned.operators, *tuned.left)
    return {
        "target": tuned.target,
        "candidates": {
            each.operator.workload: {
                "operator": each.operator.name, "key": each.candidate.key,
                "trace": each.candidate.document,
            }
            for each in everything
            if each.candidate is not None
        },
        "left_untuned": {
            each.operator.workload: {"operator": each.operator.name, "reason": each.reason}
            for each in everything
            if each.reason
        },
    }  # fmt: skip


def read_candidates(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the level of x86-64 that a folder's network was tuned for, and traces of TVM by
    workload.

    Raises:
        TuningError: there is no such file, it is damaged, or of several cores.
    """
    path = folder / CANDIDATES
    try:
        document: Any = parse_json(path.read_text())
        target = str(document["target"])
        _, level, *several = target.split("+")
        found = {str(key): each["trace"] for key, each in document["candidates"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TuningError(
            f"{path}: holds no candidates ({error}); name a folder of go-rl tune programs"
        ) from error
    if several:
        raise TuningError(f"{path}: its network runs on {several[0]}, and one core is known")
    return level, found


def write_tuned_network(tuned: TunedNetwork, config: TuneProgramsConfig, folder: Path) -> None:
    """Write the summary, candidates and curve, each aside and renamed."""
    documents = {CANDIDATES: candidates_document(tuned), SUMMARY: summary_document(tuned, config)}
    write_results(folder, tuned.curve, documents)
