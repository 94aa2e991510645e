"""Searches: many independent decisions of a policy for one problem, and what their plans earn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError
from go_rl.core.files.whole_file import whole_file
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import SearchConfig
from go_rl.policy.plan_decoders.makespan_decoder import MakespanDecoder
from go_rl.runtime.array_file import UNREADABLE, read_arrays


@dataclass(frozen=True, eq=False)
class Search:
    """``S`` decisions for one problem."""

    mixes: dict[str, Float32[np.ndarray, "S _"]]
    """[S, G] graph-level decisions of every decision."""
    reward: Float64[np.ndarray, "S"]
    """[S] what their plans earned."""

    def save(self, path: Path) -> None:
        """Write as npz; a reader never sees a half-written file."""
        with whole_file(path) as file:
            np.savez_compressed(file, reward=self.reward, **self.mixes)  # pyright: ignore[reportArgumentType]

    @staticmethod
    def load(path: Path) -> Search:
        """Read what `save` wrote.

        Raises:
            CheckpointError: the file is damaged.
        """
        try:
            found = read_arrays(path)
            reward = found.pop("reward")
        except UNREADABLE as error:
            raise CheckpointError(f"{path}: is no file of a search ({error}); delete it") from error
        return Search(found, reward)


def search(agent: Agent, decoder: MakespanDecoder, config: SearchConfig, seed: int) -> Search:
    """Draw `SearchConfig.samples` decisions and price them; the same seed gives the same ones.

    Args:
        agent: draws.
        decoder: the problem.
        config: how many to draw.
        seed: random seed.
    """
    drawn, rewards = [], []
    for round_ in range(config.drawn // config.batch):
        key = int(np.random.SeedSequence((seed, round_)).generate_state(1)[0])
        noise = np.ones(config.batch, np.float32)
        actions, rollouts = decoder.sample(agent, "plan", noise, key)
        rewards.append(rollouts.reward)
        drawn.append({name: np.asarray(each.mix) for name, each in actions.items()})
    mixes = {name: np.concatenate([each[name] for each in drawn]) for name in drawn[0]}
    return Search(mixes, np.concatenate(rewards))
