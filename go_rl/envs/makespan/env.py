"""`StepEnv`: place, schedule and fuse a graph on connected devices to shorten its makespan.

Registered as `go_rl/Placement-v1`, `go_rl/Schedule-v1`, `go_rl/Fusion-v1` and `go_rl/Joint-v1`.
"""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from go_rl.envs.episode_env import EpisodeEnv
from go_rl.envs.makespan.case import StepCase, StepOutcome
from go_rl.envs.makespan.config import StepConfig, read_step_config
from go_rl.envs.makespan.episode import StepEpisode, step_action_space
from go_rl.envs.makespan.observation import StepObserver


class StepEnv(EpisodeEnv):
    """One episode plans one step of a graph; the reward comes at its end.

    Reward: -sqrt(makespan / that of the default plan), -0.5 where the plan is four times as fast;
    `failure_reward` where no usable plan comes out, out of memory included.

    A node is decided by its device (task placement), its priority 0..19 (schedule; larger first,
    ties in topological order) and its fusion priority 0..19 (fusion; 0: not fused with its
    consumers), in this order; a single task needs a single number.

    Actions: ``node``: decisions for the next node in topological order, inputs and constants left
    out. `info["action_mask"]`, a tuple where several tasks are decided, holds [devices] where it
    may go (devices that can run it, its pin, its colocation class), and [20] ones for priorities. A
    device outside it ends the episode as a failure, as any does where no plan exists; the mask
    then, and after the end, is of all devices. ``all``: decisions for every node, one step; pins
    hold, and a colocation class follows its first node.

    Observations: see `go_rl.envs.makespan.observation`. At the end ``info`` holds ``status`` (a
    `Status`), ``detail``, ``seconds``, ``baseline_seconds``, and ``device``, ``priority`` and
    ``fusion_group`` (lowest node of the kernel), each [max_nodes], -1 for none.
    `reset(options={"graph": i})` chooses a problem; otherwise it is drawn.
    """

    episode: StepEpisode

    def __init__(self, config: StepConfig | None = None, **fields: Any) -> None:
        self.config = read_step_config(config, fields)
        cases, observer, space = step_parts(self.config)
        super().__init__(cases, observer, StepEpisode(self.config.action, space))

    def act(self, action: Any) -> StepOutcome | None:
        """See `EpisodeEnv`."""
        return self.episode.act(action)


def step_parts(
    config: StepConfig,
) -> tuple[list[StepCase], StepObserver, spaces.Discrete | spaces.MultiDiscrete]:
    """Return a case for each problem, what builds observations, and the action space."""
    problems = config.problems()
    cases = [StepCase(p, config.reward, config.failure_reward) for p in problems]
    observer = StepObserver(config.observer(problems))
    devices = problems[0].hardware.num_chips
    space = step_action_space(config.action, cases[0].tasks, observer.max_nodes, devices)
    return cases, observer, space
