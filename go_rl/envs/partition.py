"""`PartitionEnv`: partition a graph over a ring of chips, as `go_rl/Partition-v0`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from go_rl.core import EnvironmentUseError
from go_rl.envs.observation import Observer
from go_rl.envs.partition_case import PartitionCase, Result
from go_rl.envs.partition_config import PartitionConfig, read_config
from go_rl.envs.partition_episode import Episode, action_space


class PartitionEnv(gymnasium.Env[Any, Any]):
    """One episode partitions one graph; the reward comes at its end.

    Reward: throughput over that of the compiler heuristic (2.0: twice as fast); `failure_reward`
    where no usable plan comes out, out of memory included.

    Actions: ``node``: a chip for the next node in topological order, `info["action_mask"]` [chips]
    says which the solver still allows; a chip outside it, or a mask without any, ends the episode
    as a failure. ``fix``: a chip for every node, repaired by FIX, one step. ``sample``: [nodes,
    chips] log-probabilities, drawn by SAMPLE, one step.

    Observations: see `go_rl.envs.observation`. At the end ``info`` holds ``status`` (a `Status`),
    ``detail``, ``seconds``, ``baseline_seconds`` and ``device`` [max_nodes], -1 for no chip.
    `reset(options={"graph": i})` chooses a problem; otherwise it is drawn.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, config: PartitionConfig | None = None, **fields: Any) -> None:
        self.config = read_config(config, fields)
        self.cases = make_cases(self.config)
        self.observer = make_observer(self.config, self.cases)
        chips = self.cases[0].problem.package.num_chips
        self.action_space = action_space(self.config.action, self.observer.max_nodes, chips)
        self.observation_space = self.observer.space
        self.episode = Episode(self.config.action, self.action_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the class for ``options``."""
        super().reset(seed=seed)
        index = choose_case(len(self.cases), options, self.np_random)
        self.episode.begin(self.cases[index], index)
        return observation(self.observer, self.episode), step_info(self.episode)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Raises:
            EnvironmentUseError: the episode is over, or the action is not of the action space.
        """
        if self.episode.over:
            raise EnvironmentUseError("no episode is running; call reset() before step()")
        case = self.episode.case
        outcome = self.episode.act(action, self.np_random)
        reward, info = 0.0, step_info(self.episode)
        if outcome is not None:
            result = case.price([outcome])[0]
            reward, info = result.reward, final_info(self.episode, result, self.observer)
        return observation(self.observer, self.episode), reward, outcome is not None, False, info

    def action_masks(self) -> np.ndarray:
        """[chips] bool: `info["action_mask"]` as sb3-contrib's MaskablePPO asks for it."""
        return self.episode.action_mask().astype(np.bool_)


def make_cases(config: PartitionConfig) -> list[PartitionCase]:
    """Return a case for each problem of a configuration."""
    return [PartitionCase(p, config.failure_reward) for p in config.problems()]


def make_observer(config: PartitionConfig, cases: list[PartitionCase]) -> Observer:
    """Return what builds the observations, padded as configured."""
    graphs = [case.problem.graph for case in cases]
    return Observer(
        form=config.observation,
        max_nodes=config.max_nodes or max(g.num_nodes for g in graphs),
        max_edges=config.max_edges or max(1, *(g.num_edges for g in graphs)),
    )


def choose_case(cases: int, options: dict[str, Any] | None, random: np.random.Generator) -> int:
    """Return ``options["graph"]``, or a case drawn where there are several.

    Raises:
        EnvironmentUseError: an unknown option, or no such graph.
    """
    given = dict(options or {})
    index = given.pop("graph", None)
    if given:
        raise EnvironmentUseError(f"unknown option {sorted(given)[0]!r}; reset takes 'graph'")
    if index is None:
        return int(random.integers(cases)) if cases > 1 else 0
    if not isinstance(index, (int, np.integer)) or not 0 <= index < cases:
        raise EnvironmentUseError(f"options['graph'] must be 0..{cases - 1}, not {index!r}")
    return int(index)


def observation(observer: Observer, episode: Episode) -> Any:
    """Return what the agent sees of an episode now."""
    case = episode.case
    chips = case.problem.package.num_chips
    return observer.observe(case.features, episode.progress(), chips)


def step_info(episode: Episode) -> dict[str, Any]:
    """Return the ``info`` of a reset or of a step that does not end the episode."""
    info: dict[str, Any] = {"graph": episode.index}
    if episode.form == "node":
        info |= {"action_mask": episode.action_mask(), "node": episode.current}
    return info


def final_info(episode: Episode, result: Result, observer: Observer) -> dict[str, Any]:
    """Return the ``info`` of the step that ends the episode."""
    device = np.full(observer.max_nodes, -1, np.int16)
    device[: len(episode.device)] = episode.device
    return step_info(episode) | {
        "status": result.status,
        "detail": result.detail,
        "seconds": result.seconds,
        "baseline_seconds": result.baseline_seconds,
        "device": device,
    }
