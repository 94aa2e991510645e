"""`PartitionVectorEnv`: many partitioning episodes at once, solved by threads, priced together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from jaxtyping import Bool, Float64

from go_rl.core import EnvironmentUseError
from go_rl.envs.partition import (
    choose_case,
    final_info,
    make_cases,
    make_observer,
    observation,
    step_info,
)
from go_rl.envs.partition_case import Outcome, Result
from go_rl.envs.partition_config import PartitionConfig, read_config
from go_rl.envs.partition_episode import Episode, action_space

Step = tuple[Any, Float64[np.ndarray, "n"], Bool[np.ndarray, "n"], Bool[np.ndarray, "n"], dict]


class PartitionVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` episodes side by side; the same results as `PartitionEnv` in Gymnasium's
    SyncVectorEnv with same-step autoreset, from the same seeds.

    Problems, solvers and compiler baselines are shared; all episodes that end in one step are
    priced in one batch.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, config: PartitionConfig | None = None, **fields: Any
    ) -> None:
        if num_envs < 1:
            raise EnvironmentUseError(f"num_envs must be >= 1, not {num_envs}")
        self.num_envs = num_envs
        self.config = read_config(config, fields)
        self.cases = make_cases(self.config)
        self.observer = make_observer(self.config, self.cases)
        chips = self.cases[0].problem.package.num_chips
        self.single_action_space = action_space(self.config.action, self.observer.max_nodes, chips)
        self.single_observation_space = self.observer.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.episodes = [
            Episode(self.config.action, self.single_action_space) for _ in range(num_envs)
        ]
        self.random = [seeding.np_random()[0] for _ in range(num_envs)]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start all episodes; an int seeds them with seed, seed + 1, ..."""
        for i, one in enumerate(self._seeds(seed)):
            if one is not None:
                self.random[i] = seeding.np_random(one)[0]
        infos: dict[str, Any] = {}
        for i in range(self.num_envs):
            infos = self._add_info(infos, self._begin(i, options), i)
        return self._observations(), infos

    def step(self, actions: Any) -> Step:
        """Take one action in every episode; those that end are reset in the same step.

        Raises:
            EnvironmentUseError: before the first reset, or an action is not of the action space.
        """
        given = self._actions(actions)
        outcomes = self._act(given)
        results = self._price(outcomes)
        rewards = np.array([r.reward if r else 0.0 for r in results])
        ended = np.array([r is not None for r in results], np.bool_)
        infos: dict[str, Any] = {}
        for i, result in enumerate(results):
            if result is None:
                infos = self._add_info(infos, step_info(self.episodes[i]), i)
                continue
            last = {
                "final_obs": observation(self.observer, self.episodes[i]),
                "final_info": final_info(self.episodes[i], result, self.observer),
            }
            infos = self._add_info(infos, last, i)
            infos = self._add_info(infos, self._begin(i, None), i)
        return self._observations(), rewards, ended, np.zeros_like(ended), infos

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise EnvironmentUseError(f"{len(seed)} seeds were given for {self.num_envs} episodes")
        return seed

    def _begin(self, i: int, options: dict[str, Any] | None) -> dict[str, Any]:
        index = choose_case(len(self.cases), options, self.random[i])
        self.episodes[i].begin(self.cases[index], index)
        return step_info(self.episodes[i])

    def _actions(self, actions: Any) -> list[Any]:
        if any(episode.over for episode in self.episodes):
            raise EnvironmentUseError("no episode is running; call reset() before step()")
        if len(actions) != self.num_envs:
            raise EnvironmentUseError(f"{len(actions)} actions for {self.num_envs} episodes")
        given = list(iterate(self.action_space, actions))
        for episode, action in zip(self.episodes, given, strict=True):
            episode.check(action)
        return given

    def _act(self, actions: list[Any]) -> list[Outcome | None]:
        """Let the solver answer; whole proposals are repaired by one thread a core."""
        outcomes: list[Outcome | None] = [None] * self.num_envs
        whole = self.config.action != "node"
        threads = min(os.cpu_count() or 1, self.num_envs) if whole else 1

        def share(thread: int) -> None:
            for i in range(thread, self.num_envs, threads):
                outcomes[i] = self.episodes[i].act(actions[i], self.random[i], thread)

        if threads == 1:
            share(0)
            return outcomes
        for case in self.cases:
            case.solver(threads - 1)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(share, range(threads)))
        return outcomes

    def _price(self, outcomes: list[Outcome | None]) -> list[Result | None]:
        results: list[Result | None] = [None] * self.num_envs
        for index, case in enumerate(self.cases):
            mine = [
                (i, outcome)
                for i, outcome in enumerate(outcomes)
                if outcome is not None and self.episodes[i].index == index
            ]
            if mine:
                priced = case.price([outcome for _, outcome in mine])
                for (i, _), result in zip(mine, priced, strict=True):
                    results[i] = result
        return results

    def _observations(self) -> Any:
        each = [observation(self.observer, episode) for episode in self.episodes]
        space = self.single_observation_space
        return deepcopy(concatenate(space, each, create_empty_array(space, self.num_envs)))
