"""Samples of an update, the learner, and how a policy learns on one graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from go_rl.core import TrainingError
from go_rl.policy.config import SOLVER_MODES
from go_rl.policy.learn.config.checks import check_least, check_positive, check_top


@dataclass(frozen=True)
class SampleConfig:
    """Samples of one update."""

    orders: int = 16
    """Orders drawn, cut by dynamic programming."""
    placements: int = 16
    """Placements drawn through the solver."""
    solver: str = "sample"
    """Mode of the solver for placements: sample, fix, sample-nodes, fix-nodes or none."""

    def __post_init__(self) -> None:
        if self.orders < 0 or self.placements < 0 or self.orders + self.placements < 2:
            raise TrainingError(
                f"samples: orders {self.orders} and placements {self.placements} must be >= 0 and "
                "at least 2 together"
            )
        if self.solver not in SOLVER_MODES:
            raise TrainingError(f"samples: solver must be one of {', '.join(SOLVER_MODES)}, "
                                f"not {self.solver!r}")  # fmt: skip


@dataclass(frozen=True)
class PPOConfig:
    """One update."""

    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    epochs: int = 3
    """Gradient steps on one batch of samples."""
    clip: float = 0.2
    """Ratios beyond 1 +- clip earn nothing more."""
    order_entropy: float = 1e-3
    """Weight of the entropy of orders; for makespan of all decisions."""
    placement_entropy: float = 1e-3
    """Weight of the entropy of chips on a ring."""
    gradient_norm: float = 1.0
    """Largest norm of a gradient."""
    decay_updates: int = 0
    """Updates over which the learning rate falls to a tenth, along a cosine; 0: it stays."""
    least_entropy: float | None = None
    """Mean entropy of the decisions but for a ring's chips (for Gaussians, mean log standard
    deviation) below which it is pulled back; None: no floor."""
    anchor: float = 0.0
    """Weight of the divergence from the weights that fine-tuning started from."""

    def __post_init__(self) -> None:
        check_positive("ppo", self, "learning_rate", "clip", "gradient_norm")
        check_least("ppo", self, 0, "order_entropy", "placement_entropy", "decay_updates", "anchor")
        check_least("ppo", self, 1, "epochs")


@dataclass(frozen=True)
class FineTuneConfig:
    """Configuration of learning on one graph; `FINE_TUNING` holds one that suits each policy."""

    batch: int = 10
    """Samples of an update."""
    ppo: PPOConfig = field(default_factory=lambda: PPOConfig(learning_rate=1e-3, epochs=4))
    """The learner."""
    widen: float = 4.0
    """Factor on the spread of graph-level decisions before learning starts; 1: as it came."""
    first: int = 10
    """Samples of the policy as it came, its likeliest decision first, before all that."""
    top: float | None = None
    """Share of a batch that teaches, the best; 1: all, against their mean. None: all, against a
    running baseline."""
    remembered: int = 0
    """Best decisions so far that are learned again with each batch; 0: none."""

    def __post_init__(self) -> None:
        for least, name in ((2, "batch"), (1, "first"), (0, "remembered")):
            check_least("fine-tuning", self, least, name)
        check_positive("fine-tuning", self, "widen")
        check_top(self.top, "fine-tuning")


FINE_TUNING = {
    "ring": FineTuneConfig(),
    "nodes": FineTuneConfig(
        batch=32, first=1, widen=1.0, top=0.3, ppo=PPOConfig(learning_rate=3e-3, epochs=2)
    ),
}
"""Fine-tuning configuration that suits each policy that learns by PPO, by the policy's name."""
