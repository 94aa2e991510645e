"""Pools of measured candidates, as they ship, from the records of ``record_pools``.

Run: ``python -m experiments.tuning.make_pools DIR``; writes ``go_rl/tuning/pools/recorded``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from experiments.experiment import Script
from experiments.tuning.networks import NETWORKS, tunable_operators
from experiments.tuning.pools_from_records import PEAK, pools_from_records, records_of
from experiments.tuning.record_pools import CODEGEN
from go_rl.core.processor import own_target
from go_rl.runtime.records import RECORDS, RecordStore
from go_rl.tuning.pools.candidate_pool import ENDING, FOLDER


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
                pools = pools_from_records(network, uses, chosen, PEAK, about)
                pools.save(self.out / f"{network}{ENDING}")
                least = min(len(pool.keys) for pool in pools.pools)
                print(f"{network}: {pools.candidates} candidates, {least} or more of each of "
                      f"{len(pools.pools)} operators, {pools.provenance['impossible']} impossible, "
                      f"digest {pools.digest}", flush=True)  # fmt: skip


if __name__ == "__main__":
    MakePools.main()
