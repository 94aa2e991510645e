"""Measuring tile configurations of tensor programs, into the records of
`go_rl.costs.timing.collector`; what is there is not measured again. The tilings of a program are
visited in turn (`go_rl.costs.timing.rounds`): they compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from go_rl.costs.tiles import TARGET, TileWorkload, tile_configurations, tile_workloads
from go_rl.costs.tiles.measure.measure import TileRequest
from go_rl.costs.timing.collector import MODEL, Asked, Report, collecting, first_by_hash
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.tvm_calls import import_tvm

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
    with collecting(folder, config, WORKER) as collector:
        for hash_ in chosen:
            workload = by_hash[hash_]
            program, details = workload.program, _details(workload)
            settings = [
                tiles.setting for tiles in tile_configurations(program, CONFIGURATIONS, seed=0)
            ]
            collector.measure([
                Asked(
                    hash_, setting,
                    TileRequest(program.to_json(), setting, collector.full_pace, config.timing),
                    details,
                )
                for setting in settings if collector.lacks(hash_, setting)
            ])  # fmt: skip
            report(f"{workload.model}: {collector.made} measured so far")
        return collector.made


def tile_programs(config: CollectConfig) -> list[TileWorkload]:
    """Return the tensor programs that have no more FLOP than the configuration says."""
    most = config.sampling.most_flops
    return [each for each in tile_workloads() if each.program.flops <= most]


def _details(workload: TileWorkload) -> dict[str, Any]:
    return {
        MODEL: workload.model, "family": workload.family, "codegen": TARGET,
        "program": workload.program.to_json(),
    }  # fmt: skip
