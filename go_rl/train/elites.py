"""Elites: the best of many independent decisions for one problem, which a policy is to imitate.

Drawn from an untrained policy, so that what the best have in common is what matters for the problem
(the first step of the cross-entropy method, Rubinstein 1999); numbers that do not matter stay as
wide as they were drawn. A search that closes in on one optimum teaches chance instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import jax
import numpy as np
from jaxtyping import Float64

from go_rl.core import CheckpointError
from go_rl.envs.step_rewards import step_rewards
from go_rl.policy.order_decoder import OrderActions
from go_rl.policy.step_agent import StepActions, StepAgent
from go_rl.policy.step_decisions import StepDecoder
from go_rl.policy.step_search import draw_actions
from go_rl.train.config import EliteConfig


@dataclass(frozen=True, eq=False)
class Elites:
    """The best ``K`` decisions for one problem, the best first."""

    actions: StepActions
    """[K, ...] of every task."""
    reward: Float64[np.ndarray, "K"]
    """[K] what their plans earned."""

    def save(self, path: Path) -> None:
        """Write as npz; a reader never sees a half-written file."""
        arrays = {"reward": self.reward}
        for task, drawn in self.actions.items():
            arrays |= {f"{task}/mix": np.asarray(drawn.mix), f"{task}/scores": drawn.scores}
        aside = path.with_name(f".{path.name}.part.npz")
        np.savez_compressed(aside, **arrays)  # pyright: ignore[reportArgumentType]
        aside.replace(path)

    @staticmethod
    def load(path: Path) -> Elites:
        """Read what `save` wrote.

        Raises:
            CheckpointError: the file is damaged.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
            reward = found.pop("reward")
            tasks = dict.fromkeys(name.partition("/")[0] for name in found)
            actions = {t: OrderActions(found[f"{t}/mix"], found[f"{t}/scores"]) for t in tasks}
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise CheckpointError(f"{path}: is no file of elites ({error}); delete it") from error
        return Elites(actions, reward)


def find_elites(agent: StepAgent, decoder: StepDecoder, config: EliteConfig, seed: int) -> Elites:
    """Return the best decisions among `EliteConfig.samples`; the same seed gives the same ones.

    Args:
        agent: draws.
        decoder: the problem.
        config: how many to draw, and how many to keep.
        seed: of all randomness.
    """
    best = None
    for round_ in range(max(1, config.samples // config.batch)):
        key = int(np.random.SeedSequence((seed, round_)).generate_state(1)[0])
        actions = draw_actions(agent, decoder, np.ones(config.batch, np.float32), key)
        priced = decoder.workspace.price(decoder.decisions(actions))
        drawn = Elites(jax.device_get(actions), step_rewards(decoder.workspace, priced))
        best = best_of(best, drawn, config.kept)
    assert best is not None
    return best


def best_of(before: Elites | None, drawn: Elites, kept: int) -> Elites:
    """Return the best of what was known and what was drawn; the earlier of equals first."""
    if before is not None:
        both = (before.actions, drawn.actions)
        actions = jax.tree.map(lambda a, b: np.concatenate([a, b]), *both)
        drawn = Elites(actions, np.concatenate([before.reward, drawn.reward]))
    order = np.argsort(-drawn.reward, kind="stable")[:kept]
    return Elites(jax.tree.map(lambda x: np.asarray(x)[order], drawn.actions), drawn.reward[order])
