"""Pools of real GPU kernels: tuning parameters of the benchmark hub, all of which were timed.

Run: ``python -m experiments.tuning.hub_pools DIR FILE`` with the folder of the benchmark hub and
the file of pools to write. An operator is a kernel on a GPU; its candidates are a random sample of
the configurations, with the leaf vectors of their loop nests, summed, and the logarithms of their
parameters as features. What a trial took was not recorded: each counts a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import Script
from experiments.programs.nests.benchmark_hub import HubRecord, hub_records, nest_from_hub
from experiments.tuning.make_pools import trace_key
from go_rl.costs.programs.features import leaf_vectors
from go_rl.runtime.records import canonical_json
from go_rl.tuning.loop.nouns import TunedOperator
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet

KERNELS = ("convolution/A100", "convolution/MI250X", "dedispersion/A100", "gemm/RTX_3090")
MOST_PARAMETERS = 20
"""Numbers that stand for parameters; those that a kernel lacks are 0."""
PEAK_FLOPS = 4e13
"""Of the fastest of the GPUs, single precision, rounded up."""


@dataclass(frozen=True)
class HubPools(Script):
    """Options of the script."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of the benchmark hub."""
    out: Annotated[Path, tyro.conf.Positional]
    """File of pools."""
    kernels: tuple[str, ...] = KERNELS
    """Kernel and GPU: files in the folder."""
    candidates: int = 2000
    """Of each, drawn at random."""
    seed: int = 0
    """Of the draws."""

    def run(self) -> None:
        """Write the pools."""
        pools = tuple(pool_of(self, name) for name in self.kernels)
        about = {"source": "benchmark hub", "schedules": self.candidates, "seed": self.seed}
        PoolSet("benchmark-hub", "gpus", PEAK_FLOPS, pools, about).save(self.out)


def pool_of(options: HubPools, name: str) -> CandidatePool:
    """Return the pool of one kernel on one GPU."""
    kernel, _, size, records = hub_records(options.folder / f"{name}.json.gz")
    every = list(records)
    order = np.random.default_rng(options.seed).permutation(len(every))[: options.candidates]
    chosen = [every[i] for i in order.tolist()]
    rows = [features_of(kernel, size, record) for record in chosen]
    seconds = [np.nan if record.seconds is None else record.seconds for record in chosen]
    return CandidatePool(
        TunedOperator(name, hashlib.sha256(name.encode()).hexdigest()[:32], 1, 1.0),
        np.array(seconds, np.float32), np.ones(len(chosen), np.float32),
        np.array(rows, np.float16).astype(np.float32), keys_of(chosen),
    )  # fmt: skip


def features_of(kernel: str, size: tuple[int, ...], record: HubRecord) -> np.ndarray:
    """Return summed leaf vectors, and the logarithms of the parameters."""
    vectors, _ = leaf_vectors(nest_from_hub(kernel, size, record.parameters))
    parameters = np.zeros(MOST_PARAMETERS)
    parameters[: len(record.parameters)] = np.log2(1.0 + np.array([*record.parameters.values()]))
    return np.concatenate([vectors.sum(axis=0), parameters])


def keys_of(records: Sequence[HubRecord]) -> np.ndarray:
    """Return names of configurations."""
    texts = (canonical_json(dict(record.parameters)) for record in records)
    return np.array([trace_key(text) for text in texts], "u8")


if __name__ == "__main__":
    HubPools.main()
