"""Configurations of measurement, and nothing else, so that a command line reads them quickly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from go_rl.core import TrainingError
from go_rl.core.config_checks import (
    COUNT,
    LESS_THAN_ALL,
    NOT_NEGATIVE,
    PART,
    POSITIVE,
    SEED,
    SHARE,
    Range,
    check_ranges,
    check_tuples,
)
from go_rl.core.hardware.processor import own_target

Varied = Literal["fusion", "flags", "layouts"]
IDLE = 1.1
"""Times as long as at the reference speed that the fixed work takes on a core that nobody disturbs,
at most. Beyond it the work and what is timed need not be slowed alike."""


@dataclass(frozen=True)
class SamplingConfig:
    """Selection of a model's kernels to measure."""

    kernels: int = 64
    """Distinct kernels of a model, at most; those that another model has count for that one."""
    fusions: tuple[float, ...] = (0.0, 0.4, 0.8, 1.0)
    """Share of the producers that may join their consumers, in random order; one fusion each."""
    most_flops: float = 4e9
    """FLOP of a kernel (of programs: of a tensor task), beyond which it is left out."""
    most_bytes: float = 5e8
    """Bytes that a kernel reads and writes, beyond which it is left out."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        check_tuples(self, "measure", TrainingError)
        check_ranges(
            self, "measure", TrainingError, kernels=COUNT, fusions=SHARE, most_flops=POSITIVE,
            most_bytes=POSITIVE, seed=SEED,
        )  # fmt: skip
        if not self.fusions:
            raise TrainingError("measure: fusions must list shares in [0, 1], not nothing")


@dataclass(frozen=True)
class TimingConfig:
    """Timing rule: when a measurement is good enough (docs/kernels.md)."""

    seconds: float = 8e-3
    """Seconds of calls at a visit."""
    least_calls: int = 3
    """Calls at a visit, at least, however slow they are."""
    most_calls: int = 60
    """Calls at a visit, at most, however fast they are."""
    visits: int = 16
    """Visits to each kernel or program, some seconds apart; what is measured by itself has one."""
    patience: float = 0.3
    """Seconds of calls, each as quick as the quickest, after which there is no further visit."""
    variation: float = 0.0
    """Coefficient of variation of the visits' times at which there is no further visit, after two
    at least; 0: all visits are made."""
    most_slowed: float = 0.0
    """Times as long as at the reference speed that the fixed work may take beside a visit, or the
    visit does not count and is made later; 0: all visits count."""
    wait: float = 60.0
    """Seconds to wait for a core that nobody disturbs, when nothing is left to compile meanwhile;
    then visits count all the same."""
    together: int = 200
    """Kernels, at most, that are visited in turn."""
    pace_seconds: float = 10.0
    """Seconds spent on finding the core's reference speed, once for each folder and target."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "measure", TrainingError, pace_seconds=POSITIVE, visits=COUNT, together=COUNT,
            patience=POSITIVE, variation=LESS_THAN_ALL, wait=NOT_NEGATIVE, seconds=POSITIVE,
            least_calls=COUNT,
        )  # fmt: skip
        if not (self.most_slowed == 0 or self.most_slowed > 1):
            raise TrainingError(f"measure: most_slowed must be 0 or > 1, not {self.most_slowed}")
        if self.most_calls < self.least_calls:
            raise TrainingError(
                f"measure: most_calls must be no fewer than least_calls, {self.least_calls}, not "
                f"{self.most_calls}"
            )


FEW_VISITS = TimingConfig(visits=8, most_slowed=IDLE, wait=3.0)
"""Visits of kernels measured while tuning, in turn; the wait is short, as the next batch waits
too."""
ADAPTIVE_VISITS = TimingConfig(visits=8, variation=0.02)
"""The same, ended early where visits agree: AdaTune's adaptive number of measurements."""


@dataclass(frozen=True)
class CollectConfig:
    """Configuration of measuring kernels."""

    vary: Varied = "fusion"
    """Difference between measurements. ``fusion``: kernels as they come; ``flags``, ``layouts``:
    some of these, under several settings each."""
    target: str = field(default_factory=own_target)
    """Name of this machine, with one core, in the records; by default its processor's."""
    core: int | None = None
    """Core that measures. Default: the last one that this process may use."""
    platform: str = "cpu"
    """JAX's name of the kind of device, such as cpu or cuda."""
    round: int = 0
    """Number of the repetition of the whole measurement; from 1 on nothing new is sampled."""
    share: float = 1.0
    """Share of the kernels of each model that is measured, the first ones by hash."""
    least_seconds: float = 2e-5
    """Flags, layouts: kernels faster than this many seconds are left out: calling them takes
    longer."""
    most_seconds: float = 2e-2
    """Flags, layouts: kernels slower than this many seconds are left out."""
    timeout: float = 30.0
    """Seconds that a kernel or program may take, compilation included."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    timing: TimingConfig = field(default_factory=TimingConfig)

    def __post_init__(self) -> None:
        check_ranges(
            self, "measure", TrainingError, share=PART, round=NOT_NEGATIVE, core=NOT_NEGATIVE,
            timeout=POSITIVE, least_seconds=NOT_NEGATIVE, most_seconds=POSITIVE,
        )  # fmt: skip
        if self.platform != "cpu" and self.target == own_target():
            raise TrainingError(
                f"measure: {self.target!r} is this machine's processor, which platform "
                f"{self.platform!r} is not; name what measures, such as --target gpu-1"
            )
        if not self.target.strip():
            raise TrainingError("measure: target must name this machine, such as cpu-1")


NETWORKS = (
    "resnet18", "resnet50", "mobilenet-v1", "mobilenet-v2", "densenet121", "efficientnet-b0",
    "inception-v3", "bert-tiny", "bert-mini", "gpt2-small", "vit-tiny", "t5-small",
)  # fmt: skip
"""Networks whose operators are tensor tasks; those held out from training are among them."""


Choice = Literal["all", "kmeans", "disagreement"]
CHOSEN_TASKS = 50


@dataclass(frozen=True)
class ChoiceConfig:
    """Choice of the programs to measure, of those that are drawn."""

    choose: Choice = "all"
    """``kmeans``: the programs of some tensor tasks, those nearest to the centres of clusters of
    all programs' features. ``disagreement``: as many programs, from each task in turn the one on
    which the members of a learned predictor disagree most."""
    tasks: int | None = None
    """Tensor tasks to be chosen (50 if nothing is said); ``disagreement``: times candidates, the
    number of programs."""
    weights: str = ""
    """Weights of the predictor (go-rl train programs), by path or name; ``disagreement`` only."""

    def __post_init__(self) -> None:
        check_ranges(self, "measure", TrainingError, tasks=COUNT)
        if (self.choose == "disagreement") != bool(self.weights):
            raise TrainingError("measure: weights belong to choose disagreement, which needs them")
        if self.choose == "all" and self.tasks is not None:
            raise TrainingError(
                "measure: tasks belong to choose kmeans or disagreement; all takes every task"
            )


@dataclass(frozen=True)
class ProgramTiming(TimingConfig):
    """When a measurement is good enough (docs/kernels.md)."""

    most_slowed: float = IDLE
    """Times as long as at the reference speed that the fixed work may take beside a visit, or the
    visit does not count and is made later; 0: all visits count."""
    together: int = 64
    """Programs, at most, that are visited in turn."""


@dataclass(frozen=True)
class ProgramsConfig:
    """Which programs are measured, and how."""

    data_set: str = ""
    """Name of a data set that says networks, tasks, candidates, level and seeds: programs-3,
    programs-4 (operators with epilogues) or programs-5 (the same for x86-64-v4)."""
    networks: tuple[str, ...] = NETWORKS
    """Graphs of the zoo, with spaces between."""
    candidates: int = 32
    """Random candidates (TVM's schedules) of each tensor task and level, at most."""
    codegen: tuple[str, ...] = ("x86-64-v3", "x86-64-v4")
    """Levels of x86-64 that each is compiled for. They are targets of the code: the processor is
    the one that runs it."""
    memory: float = 8e9
    """Bytes that the worker's process may address."""
    build_core: int | None = None
    """Core that builds programs, and yields to any other process there. Default: the core that
    measures. Another one builds meanwhile, but reads memory and shares a cache."""
    most_seconds: float = 1.0
    """Seconds that one run of a program may take; a slower one is not timed, and its record says
    so: a larger limit tries it again."""
    target: str = field(default_factory=own_target)
    """Name of this machine, with one core, in the records; by default its processor's."""
    core: int | None = None
    """Core that measures. Default: the last one that this process may use."""
    round: int = 0
    """Number of the repetition of the whole measurement."""
    timeout: float = 30.0
    """Seconds that a program may take, compilation included."""
    most_flops: float = 4e9
    """FLOP of a tensor task, beyond which it is left out."""
    seed: int = 0
    """Random seed of the schedules."""
    choice: ChoiceConfig = field(default_factory=ChoiceConfig)
    timing: ProgramTiming = field(default_factory=ProgramTiming)

    def __post_init__(self) -> None:
        check_tuples(self, "measure", TrainingError)
        check_ranges(
            self, "measure", TrainingError, candidates=COUNT, most_seconds=POSITIVE,
            memory=Range(1e9), build_core=NOT_NEGATIVE,
        )  # fmt: skip
        if not self.networks or not self.codegen:
            raise TrainingError("measure: name at least one network and one level of x86-64")
        if self.data_set and self.choice.choose != "all":
            raise TrainingError("measure: choose is for networks; a data set says what is measured")
        self.measure  # noqa: B018 - what all measurements share is checked there

    @property
    def measure(self) -> CollectConfig:
        """Configuration that all measurements share."""
        return CollectConfig(
            target=self.target, core=self.core, round=self.round, timeout=self.timeout,
            sampling=SamplingConfig(most_flops=self.most_flops, seed=self.seed), timing=self.timing,
        )  # fmt: skip
