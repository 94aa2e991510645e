"""`PipelineConfig`: how stages are run."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import ExecutionError

LEAST_SAMPLES = 2


@dataclass(frozen=True)
class PipelineConfig:
    """Configuration of running exported stages."""

    samples: int = 50
    """Samples that are timed, after those that warm up."""
    warm_up: int = 5
    """Samples before them."""
    slots: int = 2
    """Copies of each tensor between two stages: how far a stage may run ahead."""
    timeout: float = 60.0
    """Seconds without progress after which the run ends with an error."""
    as_written: bool = False
    """Runs the operators as the files have them, in stages and in the whole model: onnxruntime
    joins none, which it does differently in a part and in the whole."""
    seed: int = 0
    """Seed of the inputs that are drawn."""

    def __post_init__(self) -> None:
        if self.samples < LEAST_SAMPLES or self.warm_up < 0 or self.slots < 1:
            raise ExecutionError(
                f"run: samples must be >= {LEAST_SAMPLES}, warm_up >= 0 and slots >= 1, not "
                f"{self.samples}, {self.warm_up} and {self.slots}"
            )
        if not self.timeout > 0:
            raise ExecutionError(f"run: timeout must be > 0 s, not {self.timeout}")
