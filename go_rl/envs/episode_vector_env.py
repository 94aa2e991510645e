"""`EpisodeVectorEnv`: many episodes at once, priced together, whatever is decided."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from jaxtyping import Bool, Float64

from go_rl.core import EnvironmentUseError
from go_rl.envs.episode import Episode, check_running, choose_case

Step = tuple[Any, Float64[np.ndarray, "n"], Bool[np.ndarray, "n"], Bool[np.ndarray, "n"], dict]


class EpisodeVectorEnv(VectorEnv[Any, Any, Any]):
    """Abstract: episodes side by side; the same results as ``vectorization_mode="sync"`` of
    `gymnasium.make_vec`, from the same seeds.

    An episode that has ended starts again in the next step, whatever its action is (Gymnasium's
    next-step autoreset). Problems are shared; all episodes that end in one step are priced in one
    batch.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, cases: Sequence[Any], observer: Any, episodes: Sequence[Episode]) -> None:
        self.cases = cases
        self.observer = observer
        self.episodes = episodes
        self.num_envs = len(episodes)
        self.single_action_space = episodes[0].space
        self.single_observation_space = observer.space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.random = [seeding.np_random()[0] for _ in episodes]
        self.begun = False

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
        self.begun = True
        return self._observations(), infos

    def step(self, actions: Any) -> Step:
        """Take one action in every episode that runs; start the others again.

        Raises:
            EnvironmentUseError: before the first reset, or an action is not of the action space.
        """
        check_running(self.begun)
        given = self._actions(actions)
        results = self._price(self.act(given))
        rewards, ended = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        for i, episode in enumerate(self.episodes):
            if i in results:
                rewards[i], ended[i] = results[i].reward, True
                info = episode.final_info(results[i], self.observer.max_nodes)
            else:
                info = episode.info() if i in given else self._begin(i, None)
            infos = self._add_info(infos, info, i)
        return self._observations(), rewards, ended, np.zeros_like(ended), infos

    @abstractmethod
    def act(self, actions: Mapping[int, Any]) -> Mapping[int, Any]:
        """Take an action in each episode that has one; return how each ended, or None while it
        goes on."""

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
        return self.episodes[i].info()

    def _actions(self, actions: Any) -> dict[int, Any]:
        """Actions by episode, of those that run."""
        if len(actions) != self.num_envs:
            raise EnvironmentUseError(f"{len(actions)} actions for {self.num_envs} episodes")
        each = enumerate(iterate(self.action_space, actions))
        given = {i: action for i, action in each if not self.episodes[i].over}
        for i, action in given.items():
            self.episodes[i].check(action)
        return given

    def _price(self, outcomes: Mapping[int, Any]) -> dict[int, Any]:
        """Results by episode, of those that ended."""
        results: dict[int, Any] = {}
        ended = [i for i, outcome in outcomes.items() if outcome is not None]
        for index, case in enumerate(self.cases):
            mine = [i for i in ended if self.episodes[i].index == index]
            priced = case.price([outcomes[i] for i in mine])
            results |= zip(mine, priced, strict=True)
        return results

    def _observations(self) -> Any:
        each = [episode.observe(self.observer) for episode in self.episodes]
        space = self.single_observation_space
        return deepcopy(concatenate(space, each, create_empty_array(space, self.num_envs)))


def check_number(num_envs: int) -> None:
    """Raise an `EnvironmentUseError` for a vector of no episodes."""
    if num_envs < 1:
        raise EnvironmentUseError(f"num_envs must be >= 1, not {num_envs}")
