"""`chameleon`: adaptive exploration by reinforcement learning, and adaptive sampling.

Ahn et al., "Chameleon: Adaptive Code Optimization for Expedited Deep Neural Network Compilation"
(ICLR 2020), in its parts that fit any `CandidateSpace`: agents move by a policy that PPO learns
against the cost model, and of the candidates that they saw only the best of each cluster are
measured, so that a batch may be smaller than asked for. There the policy is kept from batch to
batch; here it is learned anew, so that the state is a function of the trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core.config_checks import COUNT, SHARE, Range, check_ranges
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace
from go_rl.tuning.tuners.adaptive_sampling import adaptive_sample
from go_rl.tuning.tuners.model_guided import ModelGuidedTuner
from go_rl.tuning.tuners.neighbour_policy import MoveExperience, NeighbourMoves, NeighbourPolicy
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.online_scorer import OnlineScorerConfig
from go_rl.tuning.tuners.proposal import random_batch, starts
from go_rl.tuning.tuners.scored_pool import CandidateScorer, ScoredPool

LEAST_EPISODES = 2


@dataclass(frozen=True)
class ChameleonConfig:
    """Configuration of agents, of their policy, and of the sampling of what they saw."""

    effort: int = 48
    """Candidates scored for each one wanted, at most, but for `LEAST_EPISODES`; see
    `go_rl.tuning.tuners.simulated_annealing.AnnealingConfig`."""
    agents: int = 8
    """Agents side by side."""
    moves: int = 5
    """Moves of an agent in an episode, after which the policy learns."""
    choices: int = 4
    """Neighbours that an agent chooses from."""
    epochs: int = 3
    """Updates after an episode."""
    hidden: int = 32
    """Width of the networks' hidden layers."""
    learning_rate: float = 3e-3
    discount: float = 0.9
    """Discount of later rewards; a reward is the fall of the predicted score."""
    best_share: float = 0.5
    """Largest share of agents that start from the fastest candidates measured."""
    clustered: int = 4
    """Best candidates that are clustered, for each one wanted."""
    knee: float = 0.05
    """Least relative fall of the clusters' inertia (`go_rl.tuning.tuners.adaptive_sampling`); 0:
    always as many candidates as asked for."""
    model: OnlineScorerConfig = field(default_factory=OnlineScorerConfig)

    def __post_init__(self) -> None:
        check_ranges(
            self, "chameleon", TuningError, effort=COUNT, agents=COUNT, moves=COUNT, choices=COUNT,
            epochs=COUNT, hidden=COUNT, clustered=COUNT, discount=SHARE, best_share=SHARE,
            knee=SHARE, learning_rate=Range(0, 1, above=True, below=True),
        )  # fmt: skip


def chameleon(
    space: CandidateSpace,
    seed: int,
    config: ChameleonConfig | None = None,
    prior: CandidateScorer | None = None,
    learn: bool = True,
) -> ModelGuidedTuner:
    """Return the tuner; see `ModelGuidedTuner`."""
    config = config or ChameleonConfig()

    def search(
        observed: ObservedTrials, pool: ScoredPool, count: int, rng: np.random.Generator
    ) -> list[Candidate]:
        first = starts(observed, config.agents, config.best_share, rng)
        episode = config.agents * config.moves * config.choices
        episodes = max(LEAST_EPISODES, config.effort * count // episode)
        Exploration(space, pool, config, rng).run(first, episodes)
        fresh = pool.fresh(observed.seconds)
        fresh = fresh.take(np.arange(min(config.clustered * count, len(fresh.candidates))))
        chosen = adaptive_sample(fresh, count, config.knee, rng).candidates
        return list(chosen) or random_batch(observed, count, rng)

    return ModelGuidedTuner(space, seed, search, config.model, prior, learn)


class Exploration:
    """Episodes of agents that share one policy.

    Args:
        space: makes neighbours.
        pool: scores, and keeps what was scored.
        config: of the exploration.
        rng: the source of chance.
    """

    def __init__(
        self,
        space: CandidateSpace,
        pool: ScoredPool,
        config: ChameleonConfig,
        rng: np.random.Generator,
    ) -> None:
        self._space, self._pool, self._config, self._rng = space, pool, config, rng

    def run(self, first: Sequence[Candidate], episodes: int) -> None:
        """Run the episodes, each from the same candidates; all that is scored joins the pool.

        Args:
            first: where the agents start.
            episodes: how many.
        """
        if not first:
            return
        scores = self._pool.scores(first)
        rows = self._pool.rows(first).astype(np.float64)
        self._mean, self._scale = rows.mean(axis=0), rows.std(axis=0)
        self._scale[self._scale == 0] = 1.0
        self._reward_scale = float(scores.std()) or 1.0
        policy = NeighbourPolicy(
            rows.shape[1], self._config.hidden, self._config.learning_rate, self._rng
        )
        for _ in range(episodes):
            policy.learn(self._episode(policy, first), self._config.epochs)

    def _episode(self, policy: NeighbourPolicy, first: Sequence[Candidate]) -> MoveExperience:
        here, told, rewards, values = list(first), [], [], []
        for _ in range(self._config.moves):
            moves, ends = self._choices(here)
            logs, value = policy.look(moves)
            chosen = self._drawn(logs)
            before = self._pool.scores(here)
            here = [some[i] for some, i in zip(ends, chosen.tolist(), strict=True)]
            rewards.append((before - self._pool.scores(here)) / self._reward_scale)
            values.append(value)
            told.append((moves, chosen, logs[np.arange(len(here)), chosen]))
        returns = discounted(np.array(rewards), self._config.discount).astype(np.float32)
        return _experience(told, returns.reshape(-1), np.concatenate(values))

    def _choices(self, here: Sequence[Candidate]) -> tuple[NeighbourMoves, list[list[Candidate]]]:
        """Neighbours of each agent's candidate, itself first; those that do not exist are
        closed."""
        ends = []
        open = np.ones((len(here), 1 + self._config.choices), np.bool_)
        for a, candidate in enumerate(here):
            near = [self._space.neighbour(candidate, self._rng) for _ in range(open.shape[1] - 1)]
            open[a, 1:] = [one is not None for one in near]
            ends.append([candidate, *(one or candidate for one in near)])
        every = [candidate for some in ends for candidate in some]
        self._pool.scores(every)
        table = self._standardised(every).reshape(*open.shape, -1)
        return NeighbourMoves(table[:, 0], table, open), ends

    def _standardised(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S F"]:
        table = (self._pool.rows(candidates) - self._mean) / self._scale
        return np.clip(table, -5.0, 5.0).astype(np.float32)

    def _drawn(self, logs: Float32[np.ndarray, "A C"]) -> np.ndarray:
        """Choices of the agents, one each, by the Gumbel-max trick."""
        return (logs + self._rng.gumbel(size=logs.shape)).argmax(axis=1).astype(np.int32)


def discounted(rewards: Float64[np.ndarray, "T A"], discount: float) -> Float64[np.ndarray, "T A"]:
    """Return [T, A] the sum of each reward and all later ones, discounted."""
    returns = rewards.copy()
    for t in range(len(rewards) - 2, -1, -1):
        returns[t] += discount * returns[t + 1]
    return returns


def _experience(
    told: Sequence[tuple[NeighbourMoves, np.ndarray, np.ndarray]],
    returns: Float32[np.ndarray, "N"],
    values: Float32[np.ndarray, "N"],
) -> MoveExperience:
    """All moves of an episode; advantages have mean 0 and deviation 1."""
    moves, chosen, logs = zip(*told, strict=True)
    advantage = returns - values
    advantage = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-6))
    together = NeighbourMoves(*(np.concatenate(each) for each in zip(*moves, strict=True)))
    return MoveExperience(
        together,
        np.concatenate(chosen),
        np.concatenate(logs),
        advantage.astype(np.float32),
        returns,
    )
