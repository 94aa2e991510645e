"""`PartitionEnv`: partition a graph over a ring of chips, as `go_rl/Partition-v1`."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from go_rl.envs.episode_env import EpisodeEnv
from go_rl.envs.observation import Observer
from go_rl.envs.ring.case import Outcome, PartitionCase
from go_rl.envs.ring.config import PartitionConfig, read_config
from go_rl.envs.ring.episode import PartitionEpisode, action_space


class PartitionEnv(EpisodeEnv):
    """One episode partitions one graph; the reward comes at its end.

    Reward: throughput over that of the compiler heuristic (2.0: twice as fast), or another one of
    `go_rl.envs.rewards`; `failure_reward` where no usable plan comes out, out of memory included.

    Actions: ``node``: a chip for the next node in topological order, `info["action_mask"]` [chips]
    says which the solver still allows, and a chip outside it ends the episode as a failure, as any
    does where no partition exists; the mask then, and after the end, is of all chips. ``fix``: a
    chip for every node, repaired by FIX, one step. ``sample``: [nodes, chips] log-probabilities,
    drawn by SAMPLE, one step.

    Observations: see `go_rl.envs.observation`. At the end ``info`` holds ``status`` (a `Status`),
    ``detail``, ``seconds``, ``baseline_seconds`` and ``device`` [max_nodes], -1 for no chip.
    `reset(options={"graph": i})` chooses a problem; otherwise it is drawn.
    """

    episode: PartitionEpisode

    def __init__(self, config: PartitionConfig | None = None, **fields: Any) -> None:
        self.config = read_config(config, fields)
        cases, observer, space = partition_parts(self.config)
        super().__init__(cases, observer, PartitionEpisode(self.config.action, space))

    def act(self, action: Any) -> Outcome | None:
        """See `EpisodeEnv`."""
        return self.episode.act(action, self.np_random)


def partition_parts(
    config: PartitionConfig,
) -> tuple[list[PartitionCase], Observer, spaces.Space[Any]]:
    """Return a case for each problem, what builds observations, and the action space."""
    problems = config.problems()
    observer = config.observer(problems)
    space = action_space(config.action, observer.max_nodes, problems[0].hardware.num_chips)
    return (
        [PartitionCase(p, config.reward, config.failure_reward) for p in problems],
        observer,
        space,
    )
