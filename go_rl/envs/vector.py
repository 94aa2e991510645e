"""`PlanVectorEnv`: many episodes at once, solved by threads, evaluated together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from jaxtyping import Bool, Float64, UInt8

from go_rl.core import EnvironmentUseError
from go_rl.envs.case import EpisodeResult, Outcome
from go_rl.envs.config import NODE_BY_NODE, EnvironmentConfig, read_config
from go_rl.envs.environment import environment_parts
from go_rl.envs.episode import Episode, check_running, choose_case
from go_rl.envs.rendering import RENDER_FPS, RENDER_MODES, check_render_mode, rendered
from go_rl.runtime.threads import on_threads

Step = tuple[Any, Float64[np.ndarray, "n"], Bool[np.ndarray, "n"], Bool[np.ndarray, "n"], dict]


class PlanVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` episodes of `PlanEnv` side by side; the same results as
    ``vectorization_mode="sync"`` of `gymnasium.make_vec`, from the same seeds.

    An episode that has ended starts again in the next step, whatever its action is (Gymnasium's
    next-step autoreset). Problems are shared; plans for all nodes are made legal by one thread a
    core, and all episodes that end in one step are evaluated in one batch.
    """

    metadata = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        config: EnvironmentConfig | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        if num_envs < 1:
            raise EnvironmentUseError(f"num_envs must be >= 1, not {num_envs}")
        self.num_envs = num_envs
        self.config = read_config(config, fields)
        self.cases, self.observer, space = environment_parts(self.config)
        self.episodes = [Episode(self.config.action, space) for _ in range(num_envs)]
        self.single_action_space = space
        self.single_observation_space = self.observer.space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.random = [seeding.np_random()[0] for _ in self.episodes]
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
        results = self._evaluate(self._act(given))
        rewards, ended = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        for i, episode in enumerate(self.episodes):
            rewards[i] = episode.shaping if i in given else 0.0
            if i in results:
                rewards[i] += results[i].reward
                ended[i] = True
                info = episode.finish(results[i], self.observer.max_nodes)
            else:
                info = episode.info() if i in given else self._begin(i, None)
            infos = self._add_info(infos, info, i)
        return self._observations(), rewards, ended, np.zeros_like(ended), infos

    def render(self) -> tuple[str | UInt8[np.ndarray, "H W 3"], ...]:
        """Return each episode as text or as a picture; see `PlanEnv.render`."""
        return tuple(rendered(self.render_mode, episode) for episode in self.episodes)

    def _act(self, actions: Mapping[int, Any]) -> dict[int, Outcome | None]:
        """Take an action in each episode that has one; return how each ended, or None while it
        goes on."""
        outcomes: dict[int, Outcome | None] = dict.fromkeys(actions)
        running = list(actions)

        def share(rows: range) -> None:
            for i in (running[row] for row in rows):
                outcomes[i] = self.episodes[i].act(actions[i], self.random[i])

        whole = self.config.action not in NODE_BY_NODE
        for case in self.cases if whole else ():
            case.workspace.prepare()
        on_threads(share, len(running), None if whole else 1)
        return outcomes

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

    def _evaluate(self, outcomes: Mapping[int, Outcome | None]) -> dict[int, EpisodeResult]:
        """Results by episode, of those that ended."""
        results: dict[int, EpisodeResult] = {}
        for index, case in enumerate(self.cases):
            ended = {
                i: outcome
                for i, outcome in outcomes.items()
                if outcome is not None and self.episodes[i].index == index
            }
            if ended:
                results |= zip(ended, case.evaluate(list(ended.values())), strict=True)
        return results

    def _observations(self) -> Any:
        each = [episode.observe(self.observer) for episode in self.episodes]
        space = self.single_observation_space
        return deepcopy(concatenate(space, each, create_empty_array(space, self.num_envs)))
