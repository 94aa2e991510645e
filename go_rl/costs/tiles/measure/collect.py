"""Measuring tile configurations of tensor programs, into the records of
`go_rl.costs.kernels.measure.collect`; what is there is not measured again. The tilings of a program
are visited in turn (`go_rl.costs.kernels.measure.rounds`): they compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from go_rl.costs.kernels.measure.collect import MODEL, RECORDS, Report, first_by_hash, record_of
from go_rl.costs.kernels.measure.rounds import measure_together
from go_rl.costs.tiles import TARGET, TileWorkload, tile_configurations, tile_workloads
from go_rl.costs.tiles.measure.measure import TileTask
from go_rl.costs.tiles.stages import import_tvm
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.worker import folder_pace, worker_core, worker_environment
from go_rl.runtime.records import RecordStore
from go_rl.runtime.warm_worker import WarmWorker

WORKER = "go_rl.costs.tiles.measure.measure:answer"
CONFIGURATIONS = 20
"""Tile configurations of each program."""


def collect_tiles(folder: Path, config: CollectConfig, report: Report) -> int:
    """Measure what is missing, and return how many measurements were made.

    Raises:
        MissingDependencyError: TVM is not installed.
        RecordError: the folder's records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    import_tvm()
    by_hash = {w.program.workload: w for w in tile_programs(config)}
    chosen = first_by_hash(list(by_hash), config.share)
    chosen.sort(key=lambda hash_: by_hash[hash_].program.flops)
    made = 0
    with (
        RecordStore(folder / RECORDS) as store,
        WarmWorker(WORKER, worker_core(config), worker_environment(config)) as worker,
    ):
        done, full_pace = store.keys(config.target), folder_pace(folder, config)
        for hash_ in chosen:
            workload = by_hash[hash_]
            program = workload.program
            tilings = [
                tiles.setting
                for tiles in tile_configurations(program, CONFIGURATIONS, seed=0)
                if (hash_, tiles.setting, config.round) not in done
            ]
            tasks = [
                TileTask(program.to_json(), tiles, full_pace, config.timing) for tiles in tilings
            ]
            outcomes = measure_together(worker, tasks, config)
            store.add(
                record_of((hash_, tiles), config, outcome, _details(workload))
                for tiles, outcome in zip(tilings, outcomes, strict=True)
            )
            made += len(tasks)
            report(f"{workload.model}: {made} measured so far")
    return made


def tile_programs(config: CollectConfig) -> list[TileWorkload]:
    """Return the tensor programs that have no more FLOP than the configuration says."""
    most = config.sampling.most_flops
    return [each for each in tile_workloads() if each.program.flops <= most]


def _details(workload: TileWorkload) -> dict[str, Any]:
    return {
        MODEL: workload.model, "family": workload.family, "codegen": TARGET,
        "program": workload.program.to_json(),
    }  # fmt: skip
