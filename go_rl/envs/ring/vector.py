"""`PartitionVectorEnv`: many partitioning episodes at once, solved by threads, priced together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from go_rl.envs.episode_vector_env import EpisodeVectorEnv, check_number
from go_rl.envs.ring.case import Outcome
from go_rl.envs.ring.config import PartitionConfig, read_config
from go_rl.envs.ring.env import partition_parts
from go_rl.envs.ring.episode import PartitionEpisode


class PartitionVectorEnv(EpisodeVectorEnv):
    """``num_envs`` episodes of `PartitionEnv` side by side, see `EpisodeVectorEnv`; solvers and
    compiler baselines are shared, too."""

    episodes: Sequence[PartitionEpisode]

    def __init__(
        self, num_envs: int = 1, config: PartitionConfig | None = None, **fields: Any
    ) -> None:
        check_number(num_envs)
        self.config = read_config(config, fields)
        cases, observer, space = partition_parts(self.config)
        episodes = [PartitionEpisode(self.config.action, space) for _ in range(num_envs)]
        super().__init__(cases, observer, episodes)

    def act(self, actions: Mapping[int, Any]) -> dict[int, Outcome | None]:
        """Let the solver answer; whole proposals are repaired by one thread a core."""
        outcomes: dict[int, Outcome | None] = dict.fromkeys(actions)
        running, whole = list(actions), self.config.action != "node"
        threads = min(os.cpu_count() or 1, self.num_envs) if whole else 1

        def share(thread: int) -> None:
            for i in running[thread::threads]:
                outcomes[i] = self.episodes[i].act(actions[i], self.random[i], thread)

        if threads == 1:
            share(0)
            return outcomes
        for case in self.cases:
            case.solver(threads - 1)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(share, range(threads)))
        return outcomes
