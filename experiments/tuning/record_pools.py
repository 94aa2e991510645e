"""Recording: measured random candidates of the tunable operators of four networks, through TVM.

Run: ``python -m experiments tuning.record_pools DIR --core 1``; it goes on where it stopped, and
may be stopped at any moment. Candidates are drawn `TOGETHER` at a time, for all operators in turn,
so that the pools of all grow alike. ``experiments.tuning.make_pools`` makes files of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from experiments.experiment import Script
from experiments.tuning.networks import NETWORKS, tunable_operators
from go_rl.costs.programs.measure.collect import collect_programs
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.timing.config import ProgramsConfig, ProgramTiming

CODEGEN = "x86-64-v4"
TOGETHER = 25
"""Candidates that are drawn, compiled and visited together: their operands fit into memory."""


@dataclass(frozen=True)
class RecordPools(Script):
    """Options of the script."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Where the records go: records.sqlite."""
    candidates: int = 500
    """Of each operator."""
    core: int = 1
    """Core that measures; nothing else should run there."""
    networks: tuple[str, ...] = tuple(NETWORKS)
    """Whose operators are recorded."""

    def run(self) -> None:
        """Record."""
        tasks: dict[TensorTask, str] = {}
        for network in self.networks:
            for task in tunable_operators(network):
                tasks.setdefault(task, network)
        config = ProgramsConfig(
            candidates=TOGETHER, codegen=(CODEGEN,), core=self.core, timeout=20.0,
            timing=ProgramTiming(visits=4, least_calls=3, together=200),
        )  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        for seed in range(-(-self.candidates // TOGETHER)):
            drawn = replace(config, seed=seed)
            made = collect_programs(self.folder, drawn, partial(print, flush=True), tasks)
            print(f"{(seed + 1) * TOGETHER} candidates of each: {made} measured now", flush=True)
