"""`EpisodeEnv`: one episode at a time, whatever is decided."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Bool

from go_rl.core import EnvironmentUseError
from go_rl.envs.episode import Episode, check_running, choose_case


class EpisodeEnv(gymnasium.Env[Any, Any]):
    """Abstract: an episode plans one graph; the reward comes at its end.

    `reset(options={"graph": i})` chooses a problem; otherwise it is drawn.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, cases: Sequence[Any], observer: Any, episode: Episode) -> None:
        self.cases = cases
        self.observer = observer
        self.episode = episode
        self.action_space = episode.space
        self.observation_space = observer.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the class for ``options``."""
        super().reset(seed=seed)
        index = choose_case(len(self.cases), options, self.np_random)
        self.episode.begin(self.cases[index], index)
        return self.episode.observe(self.observer), self.episode.info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Raises:
            EnvironmentUseError: the episode is over, or the action is not of the action space.
        """
        check_running(not self.episode.over)
        outcome = self.act(action)
        reward, info = 0.0, self.episode.info()
        if outcome is not None:
            result = self.episode.case.price([outcome])[0]
            reward = result.reward
            info = self.episode.final_info(result, self.observer.max_nodes)
        return self.episode.observe(self.observer), reward, outcome is not None, False, info

    def action_masks(self) -> Bool[np.ndarray, "choices"]:
        """`info["action_mask"]`, all parts of an action in a row, as sb3-contrib's MaskablePPO
        asks for it (form ``node``).

        Raises:
            EnvironmentUseError: another form of actions.
        """
        if self.episode.form != "node":
            raise EnvironmentUseError("action_masks() needs action='node'")
        mask = self.episode.action_mask()
        return np.concatenate(mask if isinstance(mask, tuple) else (mask,)).astype(np.bool_)

    @abstractmethod
    def act(self, action: Any) -> Any:
        """Take an action in the episode; return how it ended, or None while it goes on."""
