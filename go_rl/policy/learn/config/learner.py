"""The learner, and how a policy learns on one graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from go_rl.policy.learn.config.checks import check_least, check_positive, check_top


@dataclass(frozen=True)
class PPOConfig:
    """One update."""

    learning_rate: float = 1e-3
    """Adam's step."""
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
        check_positive("ppo", self, "learning_rate", "clip", "gradient_norm")
        check_least("ppo", self, 0, "entropy", "decay_updates")
        check_least("ppo", self, 1, "epochs")


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
        for least, name in ((2, "batch"), (1, "first"), (0, "remembered")):
            check_least("fine-tuning", self, least, name)
        check_top(self.top, "fine-tuning")


FINE_TUNING = {
    "ring": FineTuneConfig(),
    "nodes": FineTuneConfig(
        batch=32, first=1, top=0.3, ppo=PPOConfig(learning_rate=3e-3, epochs=2)
    ),
}
"""Fine-tuning configuration that suits each policy that learns by PPO, by the policy's name."""
