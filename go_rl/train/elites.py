"""Elites: the best graph-level decisions that a cross-entropy search finds for one problem.

What a policy is to imitate before it learns by itself. The search (Rubinstein 1999) draws decisions
from the policy around a centre that belongs to the problem, prices their plans, and moves the
centre towards the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import jax
import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError
from go_rl.envs.step_rewards import step_rewards
from go_rl.policy.order_decoder import FIRST_SPREAD, OrderActions
from go_rl.policy.step_agent import StepActions, StepAgent
from go_rl.policy.step_decisions import StepDecoder
from go_rl.policy.step_observation import STEP_ORDERS
from go_rl.train.config import EliteConfig

LEAST_SPREAD = 0.1
"""Standard deviation below which no number of the centre falls."""
Centre = dict[str, tuple[Float64[np.ndarray, "G"], Float64[np.ndarray, "G"]]]
"""Mean and standard deviation of the graph-level decision, by task."""


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
        agent: gives the first centre, and the node-level scores throughout.
        decoder: the problem.
        config: how long to search, and how many to keep.
        seed: of all randomness.
    """
    padded = decoder.padded
    centre, best = _first_centre(agent, decoder), None
    for round_ in range(max(1, config.samples // config.batch)):
        now = centred(agent, centre)
        key = jax.random.key(int(np.random.SeedSequence((seed, round_)).generate_state(1)[0]))
        ones = np.ones(config.batch, np.float32)
        tasks = decoder.workspace.problem.tasks
        actions = jax.device_get(now.draw(padded, now.encode(padded), tasks, key, ones))
        priced = decoder.workspace.price(decoder.decisions(actions))
        best = best_of(best, Elites(actions, step_rewards(decoder.workspace, priced)), config.kept)
        centre = _towards(centre, best.actions, config.rate)
    assert best is not None
    return best


def centred(agent: StepAgent, centre: Centre) -> StepAgent:
    """Return the agent with the same graph-level decision for every graph."""
    params = jax.tree.map(np.asarray, agent.params)
    layers = dict(params["params"])
    for task, (mean, spread) in centre.items():
        decoder = dict(layers[f"decoders_{task}"])
        decoder["mix_mean"] = _constant(decoder["mix_mean"], mean)
        first = _untrained_spread(len(mean))
        decoder["mix_spread"] = _constant(decoder["mix_spread"], np.log(spread / first))
        layers[f"decoders_{task}"] = decoder
    return StepAgent(agent.config, {**params, "params": layers})


def _constant(
    layer: Mapping[str, np.ndarray], value: Float64[np.ndarray, "G"]
) -> dict[str, Float32[np.ndarray, "..."]]:
    """A dense layer that gives ``value`` whatever it sees."""
    return {"kernel": np.zeros_like(layer["kernel"]), "bias": value.astype(np.float32)}


def _untrained_spread(count: int) -> Float64[np.ndarray, "G"]:
    """[G] standard deviations of `OrderDecoder.mixing` before any training."""
    return np.where(np.arange(count) < len(STEP_ORDERS), FIRST_SPREAD, 1.0)


def _first_centre(agent: StepAgent, decoder: StepDecoder) -> Centre:
    """What an untrained policy draws from."""
    found = {}
    for task in decoder.workspace.problem.tasks:
        bias = agent.params["params"][f"decoders_{task}"]["mix_mean"]["bias"]
        found[task] = (np.zeros(len(bias)), _untrained_spread(len(bias)))
    return found


def best_of(before: Elites | None, drawn: Elites, kept: int) -> Elites:
    """Return the best of what was known and what was drawn; the earlier of equals first."""
    if before is not None:
        both = (before.actions, drawn.actions)
        actions = jax.tree.map(lambda a, b: np.concatenate([a, b]), *both)
        drawn = Elites(actions, np.concatenate([before.reward, drawn.reward]))
    order = np.argsort(-drawn.reward, kind="stable")[:kept]
    return Elites(jax.tree.map(lambda x: np.asarray(x)[order], drawn.actions), drawn.reward[order])


def _towards(centre: Centre, actions: StepActions, rate: float) -> Centre:
    """The centre, moved by ``rate`` towards the mean and spread of decisions."""
    found = {}
    for task, (mean, spread) in centre.items():
        mix = np.asarray(actions[task].mix, np.float64)
        wide = np.maximum(mix.std(axis=0), LEAST_SPREAD)
        found[task] = (
            (1 - rate) * mean + rate * mix.mean(axis=0),
            (1 - rate) * spread + rate * wide,
        )
    return found
