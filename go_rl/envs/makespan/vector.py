"""`StepVectorEnv`: many makespan episodes at once, priced together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from go_rl.envs.episode_vector_env import EpisodeVectorEnv, check_number
from go_rl.envs.makespan.case import StepOutcome
from go_rl.envs.makespan.config import StepConfig, read_step_config
from go_rl.envs.makespan.env import step_parts
from go_rl.envs.makespan.episode import StepEpisode


class StepVectorEnv(EpisodeVectorEnv):
    """``num_envs`` episodes of `StepEnv` side by side, see `EpisodeVectorEnv`."""

    episodes: Sequence[StepEpisode]

    def __init__(self, num_envs: int = 1, config: StepConfig | None = None, **fields: Any) -> None:
        check_number(num_envs)
        self.config = read_step_config(config, fields)
        cases, observer, space = step_parts(self.config)
        episodes = [StepEpisode(self.config.action, space) for _ in range(num_envs)]
        super().__init__(cases, observer, episodes)

    def act(self, actions: Mapping[int, Any]) -> dict[int, StepOutcome | None]:
        """See `EpisodeVectorEnv`."""
        return {i: self.episodes[i].act(action) for i, action in actions.items()}
