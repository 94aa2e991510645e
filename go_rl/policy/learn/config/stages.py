"""What precedes the updates of a run: searches, a critic, imitation."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.policy.learn.config.checks import check_least, check_positive


@dataclass(frozen=True)
class SearchConfig:
    """Searches that teach a critic; see `go_rl.policy.learn.critic.searches`."""

    samples: int = 256
    """Decisions drawn on each problem, in whole batches, at least one; 0: none, and no critic."""
    batch: int = 32
    """Decisions drawn at a time."""

    def __post_init__(self) -> None:
        check_least("searches", self, 0, "samples")
        check_least("searches", self, 2, "batch")

    @property
    def drawn(self) -> int:
        """Decisions that one search draws: whole batches."""
        return max(1, self.samples // self.batch) * self.batch


@dataclass(frozen=True)
class CriticConfig:
    """How the critic of a makespan policy learns from searches; see
    `go_rl.policy.learn.critic.learning`."""

    steps: int = 800
    """Updates."""
    problems: int = 32
    """Problems of each set of decisions in an update."""
    decisions: int = 48
    """Decisions of each problem in an update."""
    learning_rate: float = 2e-3
    """AdamW's first step."""
    weight_decay: float = 1e-3
    """AdamW's."""

    def __post_init__(self) -> None:
        check_least("critic", self, 1, "steps", "problems", "decisions")
        check_least("critic", self, 0, "weight_decay")
        check_positive("critic", self, "learning_rate")


@dataclass(frozen=True)
class ImitationConfig:
    """How a policy of rings, or of the form ``dispatch``, learns from what searches found before
    PPO; see `go_rl.policy.learn.teachers` and `go_rl.policy.learn.ring_imitation.teachers`."""

    rounds: int = 2
    """Rounds; before each the policy looks for better decisions itself. 0: no imitation."""
    updates: int = 600
    """Gradient steps of a round."""
    problems: int = 4
    """Problems in each of them."""
    astray: float = 0.1
    """Rings: share of the units whose chip the next iteration sees wrongly, so that the policy
    learns the way back from its own mistakes."""
    samples: int = 128
    """Rings: plans of an untrained policy among which the first teacher is chosen."""
    each: int = 4
    """Dispatch: problems of each graph that are searched, drawn among all hardware and
    decisions."""
    rollouts: int = 256
    """Plans drawn on each problem before a round, dispatch in whole batches."""
    max_units: int = 1300
    """Larger problems do not teach: they cost too much."""
    learning_rate: float = 5e-3
    """AdamW's first step; it falls to a tenth in a round, along a cosine."""
    weight_decay: float = 0.03
    """AdamW's."""

    def __post_init__(self) -> None:
        check_least("imitation", self, 0, "rounds", "updates")
        check_least("imitation", self, 0, "rollouts", "weight_decay", "astray")
        check_least("imitation", self, 1, "problems", "samples", "each", "max_units")
        check_positive("imitation", self, "learning_rate")

    @property
    def teaches(self) -> bool:
        """Whether anything is imitated."""
        return self.rounds > 0 and self.updates > 0


RING_IMITATION = ImitationConfig(
    rounds=0, updates=250, problems=2, samples=64, rollouts=32, max_units=1279, weight_decay=0.01
)
"""What serves rings, where imitation is asked for."""
