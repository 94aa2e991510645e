"""Imitation, which precedes the updates of a run."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.policy.learn.config.checks import check_least, check_positive


@dataclass(frozen=True)
class ImitationConfig:
    """Imitation, before PPO, of plans that searches found, by a ring policy; see
    `go_rl.policy.learn.ring_imitation.teachers`."""

    rounds: int = 2
    """Rounds; before each the policy looks for better decisions itself. 0: no imitation."""
    updates: int = 600
    """Gradient steps of a round."""
    problems: int = 4
    """Problems in each of them."""
    astray: float = 0.1
    """Share of the units whose chip the next iteration sees wrongly, so that the policy
    learns the way back from its own mistakes."""
    samples: int = 128
    """Plans of an untrained policy among which the first teacher is chosen."""
    rollouts: int = 256
    """Plans drawn on each problem before a round."""
    max_units: int = 1300
    """Larger problems do not teach: they cost too much."""
    learning_rate: float = 5e-3
    """AdamW's first step; it falls to a tenth in a round, along a cosine."""
    weight_decay: float = 0.03
    """Weight decay of AdamW."""

    def __post_init__(self) -> None:
        check_least("imitation", self, 0, "rounds", "updates")
        check_least("imitation", self, 0, "rollouts", "weight_decay", "astray")
        check_least("imitation", self, 1, "problems", "samples", "max_units")
        check_positive("imitation", self, "learning_rate")

    @property
    def teaches(self) -> bool:
        """Whether anything is imitated."""
        return self.rounds > 0 and self.updates > 0


RING_IMITATION = ImitationConfig(
    rounds=0, updates=250, problems=2, samples=64, rollouts=32, max_units=1279, weight_decay=0.01
)
"""Imitation configuration that suits rings, where imitation is asked for."""
