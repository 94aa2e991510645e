"""What ``go-rl measure programs`` measures: configuration only."""

from __future__ import annotations

from dataclasses import dataclass, field

from go_rl.core import TrainingError
from go_rl.measure.config import CollectConfig

NETWORKS = (
    "resnet18", "resnet50", "mobilenet-v1", "mobilenet-v2", "densenet121", "efficientnet-b0",
    "inception-v3", "bert-tiny", "bert-mini", "gpt2-small", "vit-tiny", "t5-small",
)  # fmt: skip
"""Networks whose operators are tasks; those held out from training are among them."""


@dataclass(frozen=True)
class ProgramsConfig:
    """Which programs are measured, and how."""

    networks: tuple[str, ...] = NETWORKS
    """Graphs of the zoo."""
    programs: int = 32
    """Random schedules of each task and target, at most."""
    codegen: tuple[str, ...] = ("x86-64-v3", "x86-64-v4")
    """Levels of x86-64 that each is compiled for. They are targets of the code: the processor is
    the one that runs it."""
    most_flops: float = 1e9
    """Tasks with more are left out."""
    memory: float = 8e9
    """Bytes that the worker's process may address."""
    seed: int = 0
    measure: CollectConfig = field(default_factory=CollectConfig)
    """Target, core, time-out and timing."""

    def __post_init__(self) -> None:
        if self.programs < 1:
            raise TrainingError(f"measure: programs must be >= 1, not {self.programs}")
        if not self.networks or not self.codegen:
            raise TrainingError("measure: name at least one network and one level of x86-64")
        if not (self.most_flops > 0 and self.memory >= 1e9):
            raise TrainingError("measure: most_flops must be above 0 and memory at least 1e9")
