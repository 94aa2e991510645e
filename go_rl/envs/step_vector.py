"""`StepVectorEnv`: many makespan episodes at once, priced together."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from go_rl.core import EnvironmentUseError
from go_rl.envs.partition import choose_case
from go_rl.envs.partition_vector import Step
from go_rl.envs.step import last_info, seen, space_of_actions, step_cases, step_observer, turn_info
from go_rl.envs.step_case import StepOutcome, StepResult
from go_rl.envs.step_config import StepConfig, read_step_config
from go_rl.envs.step_episode import StepEpisode


class StepVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` episodes side by side; the same results as `StepEnv` in Gymnasium's
    SyncVectorEnv with same-step autoreset, from the same seeds.

    Problems are shared; all episodes that end in one step are priced in one batch.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int = 1, config: StepConfig | None = None, **fields: Any) -> None:
        if num_envs < 1:
            raise EnvironmentUseError(f"num_envs must be >= 1, not {num_envs}")
        self.num_envs = num_envs
        self.config = read_step_config(config, fields)
        self.cases = step_cases(self.config)
        self.observer = step_observer(self.config, self.cases)
        one = space_of_actions(self.config, self.cases, self.observer)
        self.single_action_space = one
        self.single_observation_space = self.observer.space
        self.action_space = batch_space(one, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.episodes = [StepEpisode(self.config.action, one) for _ in range(num_envs)]
        self.random = [seeding.np_random()[0] for _ in range(num_envs)]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start all episodes; an int seeds them with seed, seed + 1, ..."""
        if isinstance(seed, (int, np.integer)):
            seed = [int(seed) + i for i in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else seed
        if len(seeds) != self.num_envs:
            raise EnvironmentUseError(f"{len(seeds)} seeds were given for {self.num_envs} episodes")
        infos: dict[str, Any] = {}
        for i, one in enumerate(seeds):
            if one is not None:
                self.random[i] = seeding.np_random(one)[0]
            infos = self._add_info(infos, self._begin(i, options), i)
        return self._observations(), infos

    def step(self, actions: Any) -> Step:
        """Take one action in every episode; those that end are reset in the same step.

        Raises:
            EnvironmentUseError: before the first reset, or an action is not of the action space.
        """
        given = self._actions(actions)
        outcomes = [e.act(a) for e, a in zip(self.episodes, given, strict=True)]
        results = self._price(outcomes)
        rewards = np.array([r.reward if r else 0.0 for r in results])
        ended = np.array([r is not None for r in results], np.bool_)
        infos: dict[str, Any] = {}
        for i, (episode, result) in enumerate(zip(self.episodes, results, strict=True)):
            if result is None:
                infos = self._add_info(infos, turn_info(episode), i)
                continue
            last = {
                "final_obs": seen(self.observer, episode),
                "final_info": last_info(episode, result, self.observer),
            }
            infos = self._add_info(infos, last, i)
            infos = self._add_info(infos, self._begin(i, None), i)
        return self._observations(), rewards, ended, np.zeros_like(ended), infos

    def _begin(self, i: int, options: dict[str, Any] | None) -> dict[str, Any]:
        index = choose_case(len(self.cases), options, self.random[i])
        self.episodes[i].begin(self.cases[index], index)
        return turn_info(self.episodes[i])

    def _actions(self, actions: Any) -> list[Any]:
        if any(episode.over for episode in self.episodes):
            raise EnvironmentUseError("no episode is running; call reset() before step()")
        if len(actions) != self.num_envs:
            raise EnvironmentUseError(f"{len(actions)} actions for {self.num_envs} episodes")
        given = list(iterate(self.action_space, actions))
        for episode, action in zip(self.episodes, given, strict=True):
            episode.check(action)
        return given

    def _price(self, outcomes: list[StepOutcome | None]) -> list[StepResult | None]:
        results: list[StepResult | None] = [None] * self.num_envs
        for index, case in enumerate(self.cases):
            mine = [i for i, o in enumerate(outcomes) if o and self.episodes[i].index == index]
            priced = case.price([o for i in mine if (o := outcomes[i])])
            for i, result in zip(mine, priced, strict=True):
                results[i] = result
        return results

    def _observations(self) -> Any:
        each = [seen(self.observer, episode) for episode in self.episodes]
        space = self.single_observation_space
        return deepcopy(concatenate(space, each, create_empty_array(space, self.num_envs)))
