"""Pools of measured candidates, as they ship, from the records of ``record_pools``.

Run: ``python -m experiments tuning.make_pools DIR``; writes ``go_rl/tuning/pools/recorded``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from experiments.experiment import Script
from experiments.tuning.networks import NETWORKS, tunable_operators
from experiments.tuning.record_pools import CODEGEN
from go_rl.core.hardware.processor import own_target
from go_rl.costs.programs.features import LEAF_NUMBERS, leaf_vectors
from go_rl.costs.programs.measure.collect import NEST, TRACE
from go_rl.costs.programs.nests import nest_from_json
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.timing.rounds import VISIT_SECONDS
from go_rl.runtime.records import RECORDS, Record, RecordStore
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import TunedOperator
from go_rl.tuning.pools.candidate_pool import ENDING, FOLDER, CandidatePool, PoolSet


@dataclass(frozen=True)
class MakePools(Script):
    """Options of the script."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of the records."""
    out: Path = FOLDER
    """Where the pools go."""
    target: str = own_target()
    """Of the records."""
    networks: tuple[str, ...] = tuple(NETWORKS)

    def run(self) -> None:
        """Write the pools."""
        self.out.mkdir(parents=True, exist_ok=True)
        with RecordStore(self.folder / RECORDS) as store:
            for network in self.networks:
                uses = tunable_operators(network)
                chosen = records_of(store, uses, [self.target])
                newest = max((record.measured_at for record in chosen), default="")
                about = {
                    "measured": newest, "codegen": CODEGEN, "batch": 1, "cores": 1,
                    "schedules": "random draws of TVM 0.27 MetaSchedule, no tensor instructions",
                }  # fmt: skip
                pools = pools_from_records(network, uses, chosen, about)
                pools.save(self.out / f"{network}{ENDING}")
                least = min(len(pool.keys) for pool in pools.pools)
                print(f"{network}: {pools.candidates} candidates, {least} or more of each of "
                      f"{len(pools.pools)} operators, {pools.provenance['impossible']} impossible, "
                      f"digest {pools.digest}", flush=True)  # fmt: skip


COMPILE_SECONDS = "compile_seconds"
MEDIAN = "median"
NOT_DRAWN = "could be drawn"
"""In the reason of a record that stands for no candidate."""
TIMEOUT = 20.0
"""Seconds that a candidate took which took too long."""
UNKNOWN_VISITS = 0.2
"""Seconds of timing where a record does not tell them: about the median of those that do."""


PEAK = 64 * 4.5e9
"""FLOP/s that no operator exceeds: two 512-bit units at the fastest clock of a server."""


def trace_key(trace: str) -> int:
    """Return the key of a candidate in a pool, a hash of its trace (of a failure: its setting)."""
    return int.from_bytes(hashlib.sha256(trace.encode()).digest()[:8], "big")


def records_of(
    store: RecordStore, uses: Mapping[TensorTask, int], targets: Iterable[str]
) -> list[Record]:
    """Return the records of operators under the code of `CODEGEN`."""
    return [
        record
        for target in targets
        for record in store.find(target, [task.workload for task in uses])
        if f'"codegen":"{CODEGEN}"' in record.setting
    ]


def pools_from_records(
    network: str,
    uses: Mapping[TensorTask, int],
    records: Iterable[Record],
    provenance: Mapping[str, Any],
) -> PoolSet:
    """Return the pools of a network.

    Seconds are the median of a candidate's calls: of so few, the low quantile that a record calls
    its seconds is the least, which a core shared with others may put far below the truth.
    Candidates with the same trace are one, the first. Failures keep their place with NaN seconds,
    and so do candidates that would be faster than `PEAK`: their measurement is wrong. Their
    number is in the provenance (``impossible``).

    Args:
        network: its name.
        uses: its tunable operators, each with how often it is used.
        records: of one target and codegen; those of other tasks are left out.
        provenance: what the file says of the measurement.

    Raises:
        TuningError: there is no record of an operator, or records are of several targets.
    """
    wanted = {task.workload: task for task in uses}
    kept = [x for x in records if x.workload in wanted and NOT_DRAWN not in x.reason]
    targets = {record.target for record in kept}
    if len(targets) != 1:
        found = ", ".join(sorted(targets)) or "none"
        raise TuningError(f"{network}: records must be of one target, not of {found}")
    pools = [
        _pool(task, count, [x for x in kept if x.workload == task.workload])
        for task, count in uses.items()
    ]
    wrong = [pool.seconds < pool.operator.flops / PEAK for pool in pools]
    possible = tuple(
        replace(pool, seconds=np.where(some, np.float32(np.nan), pool.seconds))
        for pool, some in zip(pools, wrong, strict=True)
    )
    impossible = int(sum(some.sum() for some in wrong))
    about = {**provenance, "seconds": "median", "impossible": impossible}
    return PoolSet(network, targets.pop(), PEAK, possible, about)


def _pool(task: TensorTask, count: int, records: list[Record]) -> CandidatePool:
    operator = TunedOperator(task.title, task.workload, count, float(task.flops))
    rows: dict[int, tuple[float, float, np.ndarray]] = {}
    for record in sorted(records, key=lambda each: each.setting):
        row = _row(record)
        rows.setdefault(trace_key(str(record.details.get(TRACE, record.setting))), row)
    if not any(np.isfinite(seconds) for seconds, _, _ in rows.values()):
        raise TuningError(f"{task.title}: there is no record with a time")
    seconds, spent, features = zip(*rows.values(), strict=True)
    return CandidatePool(
        operator, np.array(seconds, np.float32), np.array(spent, np.float32),
        np.array(features, np.float16).astype(np.float32), np.array(list(rows), np.uint64),
    )  # fmt: skip


def _row(record: Record) -> tuple[float, float, np.ndarray]:
    """Return seconds, seconds spent and features."""
    details = record.details
    if record.seconds is None or NEST not in details:
        slow = "more than" in record.reason
        return np.nan, TIMEOUT if slow else UNKNOWN_VISITS, np.zeros(LEAF_NUMBERS)
    spent = float(details[COMPILE_SECONDS]) + float(details.get(VISIT_SECONDS, UNKNOWN_VISITS))
    vectors, _ = leaf_vectors(nest_from_json(details[NEST]))
    seconds = float(details.get(MEDIAN, record.seconds))
    return seconds, max(spent, 1e-3), vectors.sum(0)
