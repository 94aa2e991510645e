"""Imitation, which precedes the updates of a run."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import TrainingError
from go_rl.core.ranges import COUNT, NOT_NEGATIVE, POSITIVE, check_ranges


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
    """AdamW's."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "imitation", TrainingError, rounds=NOT_NEGATIVE, updates=NOT_NEGATIVE,
            rollouts=NOT_NEGATIVE, weight_decay=NOT_NEGATIVE, astray=NOT_NEGATIVE, problems=COUNT,
            samples=COUNT, max_units=COUNT, learning_rate=POSITIVE,
        )  # fmt: skip

    @property
    def teaches(self) -> bool:
        """Whether anything is imitated."""
        return self.rounds > 0 and self.updates > 0


RING_IMITATION = ImitationConfig(
    rounds=0, updates=250, problems=2, samples=64, rollouts=32, max_units=1279, weight_decay=0.01
)
"""Imitation configuration that suits rings, where imitation is asked for."""
