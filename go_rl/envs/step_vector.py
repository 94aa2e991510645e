"""`StepVectorEnv`: many makespan episodes at once, priced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from go_rl.envs.episode_vector_env import EpisodeVectorEnv, check_number
from go_rl.envs.step import step_parts
from go_rl.envs.step_case import StepOutcome
from go_rl.envs.step_config import StepConfig, read_step_config
from go_rl.envs.step_episode import StepEpisode


class StepVectorEnv(EpisodeVectorEnv):
    """``num_envs`` episodes side by side; the same results as `StepEnv` in Gymnasium's
    SyncVectorEnv with same-step autoreset, from the same seeds.

    Problems are shared; all episodes that end in one step are priced in one batch.
    """

    episodes: Sequence[StepEpisode]

    def __init__(self, num_envs: int = 1, config: StepConfig | None = None, **fields: Any) -> None:
        check_number(num_envs)
        self.config = read_step_config(config, fields)
        cases, observer, space = step_parts(self.config)
        episodes = [StepEpisode(self.config.action, space) for _ in range(num_envs)]
        super().__init__(cases, observer, episodes)

    def act(self, actions: Sequence[Any]) -> list[StepOutcome | None]:
        """See `EpisodeVectorEnv`."""
        return [e.act(a) for e, a in zip(self.episodes, actions, strict=True)]
