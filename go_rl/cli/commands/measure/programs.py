"""``go-rl measure programs``: real times of random candidates of networks' operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.core.hardware.processor import own_target
from go_rl.costs.timing.config import (
    ChoiceConfig,
    CollectConfig,
    ProgramsConfig,
    SamplingConfig,
    TimingConfig,
)


@dataclass(frozen=True)
class ProgramOptions:
    """Choice of the programs to measure, and limits of the measuring."""

    data_set: str = ProgramsConfig.data_set
    """Name of a data set that says networks, tasks, candidates, level and seeds: programs-3."""
    networks: tuple[str, ...] = ProgramsConfig.networks
    """Graphs of the zoo, with spaces between."""
    candidates: int = ProgramsConfig.candidates
    """Random candidates of each tensor task and level, at most."""
    codegen: tuple[str, ...] = ProgramsConfig.codegen
    """Levels of x86-64 that each is compiled for. They are targets of the code: the processor is
    the one that runs it."""
    memory: float = ProgramsConfig.memory
    """Bytes that the worker's process may address."""
    build_core: int | None = ProgramsConfig.build_core
    """Core that builds programs, and yields to any other process there. Default: the core that
    measures. Another one builds meanwhile, but reads memory and shares a cache."""
    most_seconds: float = ProgramsConfig.most_seconds
    """Seconds that one run of a program may take; a slower one is not timed, and its record says
    so."""
    target: str = field(default_factory=own_target)
    """Name of this machine, with one core, in the records; by default its processor's."""
    core: int | None = CollectConfig.core
    """Core that measures. Default: the last one that this process may use."""
    round: int = CollectConfig.round
    """Number of the repetition of the whole measurement."""
    timeout: float = CollectConfig.timeout
    """Seconds that a program may take, compilation included."""
    most_flops: float = SamplingConfig.most_flops
    """FLOP of a task, beyond which it is left out."""
    seed: int = SamplingConfig.seed
    """Random seed of the candidates."""

    def config(self, timing: TimingConfig, choice: ChoiceConfig) -> ProgramsConfig:
        """Return the configuration that the library knows."""
        sampling = SamplingConfig(most_flops=self.most_flops, seed=self.seed)
        measure = CollectConfig(
            target=self.target, core=self.core, round=self.round, timeout=self.timeout,
            sampling=sampling, timing=timing,
        )  # fmt: skip
        return ProgramsConfig(
            self.data_set, self.networks, self.candidates, self.codegen, self.memory,
            self.build_core, self.most_seconds, choice, measure,
        )  # fmt: skip


@dataclass(frozen=True)
class ProgramTiming(TimingConfig):
    """Effort and quality of a measurement (docs/kernels.md)."""

    together: int = 64
    """Programs, at most, that are visited in turn."""


@dataclass(frozen=True)
class MeasurePrograms:
    """Options of ``go-rl measure programs``."""

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the records: records.sqlite (docs/programs.md)."""
    list: bool = False
    """Only list the tasks; nothing is measured, and TVM is not needed."""
    programs: ProgramOptions = field(default_factory=ProgramOptions)
    choice: ChoiceConfig = field(default_factory=ChoiceConfig)
    timing: ProgramTiming = field(default_factory=ProgramTiming)


def run(config: MeasurePrograms) -> int:
    """Run ``go-rl measure programs``; returns the exit code."""
    folder = Path(config.folder)
    programs = config.programs.config(config.timing, config.choice)
    check_folder(folder, "DIR")
    from go_rl.api.measure import measure_programs, tensor_tasks

    out = console()
    if config.list:
        tasks = tensor_tasks(programs)
        for network, title, flops in tasks:
            print_line(out, f"{network}: {title}, {flops / 1e6:.3g} MFLOP")
        networks = Counter(network for network, _, _ in tasks)
        for network, count in networks.items():
            print_line(out, f"{network}: {count} tasks of its own")
        print_line(out, f"{len(tasks):,} tasks of {len(networks)} networks")
        return OK
    with counting("measuring") as report:
        found = measure_programs(folder, programs, report=report)
    known = f"{found.records:,} records of {programs.measure.target} in {found.path}"
    print_line(out, f"{found.made:,} measured, {known}")
    return OK
