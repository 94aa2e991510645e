"""Recorded candidates of a network with their compact ASTs: what predictors of programs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.tuning.make_pools import pools_from_records, records_of, trace_key
from experiments.tuning.networks import tunable_operators
from experiments.tuning.record_pools import CODEGEN
from go_rl.core import ReadError
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs, programs_of_task
from go_rl.costs.programs.measure.collect import NEST, TRACE
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.measure.features_file import nest_features
from go_rl.costs.programs.workloads import TensorTask
from go_rl.runtime.records import RECORDS, Record, RecordStore
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet


@dataclass(frozen=True, eq=False)
class RecordedPrograms:
    """A network's pools without failures, and the programs of each."""

    pools: PoolSet
    programs: tuple[ProgramInputs, ...]
    """Of each pool, in its order."""
    failed: int
    """Candidates that failed when they were recorded, or have an impossible time."""

    @property
    def tasks(self) -> tuple[TensorTask, ...]:
        """Of each pool."""
        found = (each.tasks[0] for each in self.programs)
        return tuple(task for task in found if task is not None)


def recorded_programs(folder: Path, network: str) -> RecordedPrograms:
    """Return what ``record_pools`` recorded of a network.

    Raises:
        ReadError: a pool has no candidate with a time.
        RecordError: the records cannot be read.
        TuningError: there is no record of an operator.
    """
    uses = tunable_operators(network)
    with RecordStore(folder / RECORDS) as store:
        records = records_of(store, uses, store.targets())
    whole = pools_from_records(network, uses, records, {"codegen": CODEGEN})
    nests = _nests(records)
    kept = [_timed(pool, nests[pool.operator.workload]) for pool in whole.pools]
    pools = replace(whole, pools=tuple(kept))
    target = ProgramTarget(whole.target, CODEGEN)
    programs = []
    for pool, task in zip(pools.pools, uses, strict=True):
        texts = tuple(nests[task.workload][key] for key in pool.keys.tolist())
        programs.append(programs_of_task(nest_features(texts, folder), task, target))
    return RecordedPrograms(pools, tuple(programs), whole.candidates - pools.candidates)


def without(examples: ProgramExamples, tasks: Sequence[TensorTask]) -> ProgramExamples:
    """Return the examples of other tasks."""
    own = [i for i, task in enumerate(examples.inputs.tasks) if task in set(tasks)]
    return examples.take(np.flatnonzero(~np.isin(examples.inputs.task, own)))


def _nests(records: Sequence[Record]) -> dict[str, dict[int, str]]:
    """Loop nests by workload and key in the pool."""
    found: dict[str, dict[int, str]] = {}
    for record in records:
        if record.seconds is not None and NEST in record.details:
            own = found.setdefault(record.workload, {})
            own[trace_key(str(record.details[TRACE]))] = str(record.details[NEST])
    return found


def _timed(pool: CandidatePool, nests: Mapping[int, str]) -> CandidatePool:
    good = np.isfinite(pool.seconds) & np.array([key in nests for key in pool.keys.tolist()])
    if not good.any():
        raise ReadError(f"{pool.operator.name}: no recorded candidate has a time")
    return CandidatePool(
        pool.operator, pool.seconds[good], pool.spent[good], pool.features[good], pool.keys[good]
    )
