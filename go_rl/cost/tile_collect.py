"""Measuring tile configurations of the tile task's programs, into the records of
`go_rl.cost.kernel_collect`; what is there is not measured again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from go_rl.core.warm_worker import WarmWorker
from go_rl.cost.collect_config import CollectConfig
from go_rl.cost.kernel_collect import (
    MODEL,
    RECORDS,
    Report,
    first_by_hash,
    record_of,
)
from go_rl.cost.measuring_worker import (
    folder_pace,
    outcome_of,
    worker_core,
    worker_environment,
)
from go_rl.cost.tiles import TARGET, TileWorkload, tile_configurations, tile_workloads
from go_rl.cost.tiles.tile_stages import import_tvm
from go_rl.records import RecordStore

WORKER = "go_rl.cost.tiles.tile_measure:measure_tiles"
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
        for i, hash_ in enumerate(chosen):
            workload = by_hash[hash_]
            for tiles in tile_configurations(workload.program, CONFIGURATIONS, seed=0):
                if (hash_, tiles.setting, config.round) in done:
                    continue
                payload = {
                    "program": workload.program.to_json(), "tiles": tiles.setting,
                    "timing": asdict(config.timing), "full_pace": full_pace,
                }  # fmt: skip
                outcome = outcome_of(worker, payload, config.timeout)
                key = (hash_, tiles.setting)
                store.add([record_of(key, config, outcome, _details(workload))])
                made += 1
            report(f"{i + 1}/{len(chosen)} {workload.model}: {made} measured so far")
    return made


def tile_programs(config: CollectConfig) -> list[TileWorkload]:
    """Return the programs of the tile task that have no more FLOP than the configuration says."""
    most = config.sampling.most_flops
    return [each for each in tile_workloads() if each.program.flops <= most]


def _details(workload: TileWorkload) -> dict[str, Any]:
    return {
        MODEL: workload.model, "family": workload.family, "codegen": TARGET,
        "program": workload.program.to_json(),
    }  # fmt: skip
