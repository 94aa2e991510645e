"""`PipelineConfig`: how stages are run."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import ExecutionError
from go_rl.core.config_checks import COUNT, NOT_NEGATIVE, POSITIVE, SEED, Range, check_ranges

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
        check_ranges(
            self, "run", ExecutionError, samples=Range(LEAST_SAMPLES), warm_up=NOT_NEGATIVE,
            slots=COUNT, timeout=POSITIVE, seed=SEED,
        )  # fmt: skip
