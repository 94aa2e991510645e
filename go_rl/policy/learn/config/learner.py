"""The learner, and how a policy learns on one graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, NOT_NEGATIVE, PART, POSITIVE, Range, check_ranges


@dataclass(frozen=True)
class PPOConfig:
    """One update."""

    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    epochs: int = 3
    """Gradient steps on one batch of samples."""
    clip: float = 0.2
    """Ratios beyond 1 +- clip earn nothing more."""
    entropy: float = 1e-3
    """Weight of the entropy of the decisions."""
    gradient_norm: float = 1.0
    """Largest norm of a gradient."""
    decay_updates: int = 0
    """Updates over which the learning rate falls to a tenth, along a cosine; 0: it stays."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "ppo", TrainingError, learning_rate=POSITIVE, clip=POSITIVE,
            gradient_norm=POSITIVE, entropy=NOT_NEGATIVE, decay_updates=NOT_NEGATIVE, epochs=COUNT,
        )  # fmt: skip


@dataclass(frozen=True)
class FineTuneConfig:
    """Configuration of learning on one graph; `FINE_TUNING` holds one that suits each policy."""

    batch: int = 20
    """Samples of an update."""
    ppo: PPOConfig = field(default_factory=lambda: PPOConfig(learning_rate=6e-4, epochs=4))
    """The learner."""
    first: int = 20
    """Samples of the policy as it came, its likeliest decision first, before all that."""
    top: float | None = None
    """Share of a batch that teaches, the best; 1: all, against their mean. None: all, against a
    running baseline."""
    remembered: int = 0
    """Best decisions so far that are learned again with each batch; 0: none."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "fine-tuning", TrainingError, batch=Range(2), first=COUNT,
            remembered=NOT_NEGATIVE, top=PART,
        )  # fmt: skip


FINE_TUNING = {
    "ring": FineTuneConfig(),
    "nodes": FineTuneConfig(
        batch=32, first=1, top=0.3, ppo=PPOConfig(learning_rate=3e-3, epochs=2)
    ),
}
"""Fine-tuning configuration that suits each policy that learns by PPO, by the policy's name."""
