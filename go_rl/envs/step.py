"""`StepEnv`: place, schedule and fuse a graph on connected devices to shorten its makespan.

Registered as `go_rl/Placement-v0`, `go_rl/Schedule-v0`, `go_rl/Fusion-v0` and `go_rl/Joint-v0`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Bool

from go_rl.core import EnvironmentUseError
from go_rl.envs.observation import Observer
from go_rl.envs.partition import choose_case
from go_rl.envs.step_case import StepCase, StepResult
from go_rl.envs.step_config import StepConfig, read_step_config
from go_rl.envs.step_episode import StepEpisode, step_action_space
from go_rl.envs.step_observation import StepObserver


class StepEnv(gymnasium.Env[Any, Any]):
    """One episode plans one step of a graph; the reward comes at its end.

    Reward: -sqrt(makespan / that of the default plan), -0.5 where the plan is four times as fast;
    `invalid_reward` where no usable plan comes out, out of memory included.

    A node is decided by its device (task placement), its priority 0..19 (schedule; larger first,
    ties in topological order) and its fusion priority 0..19 (fusion; 0: not fused with its
    consumers), in this order; a single task needs a single number.

    Actions: ``node``: decisions for the next node in topological order, inputs and constants left
    out. With the task placement, `info["action_mask"]` [devices] says where it may go: devices that
    can run it, its pin, its colocation class; a device outside it, or a mask without any, ends the
    episode as a failure. ``all``: decisions for every node, one step; pins hold, and a colocation
    class follows its first node.

    Observations: see `go_rl.envs.step_observation`. At the end ``info`` holds ``status`` (a
    `Status`), ``detail``, ``seconds``, ``baseline_seconds``, and ``device``, ``priority`` and
    ``fusion_group`` (lowest node of the kernel), each [max_nodes], -1 for none.
    `reset(options={"graph": i})` chooses a problem; otherwise it is drawn.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, config: StepConfig | None = None, **fields: Any) -> None:
        self.config = read_step_config(config, fields)
        self.cases = step_cases(self.config)
        self.observer = step_observer(self.config, self.cases)
        self.action_space = space_of_actions(self.config, self.cases, self.observer)
        self.observation_space = self.observer.space
        self.episode = StepEpisode(self.config.action, self.action_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see the class for ``options``."""
        super().reset(seed=seed)
        index = choose_case(len(self.cases), options, self.np_random)
        self.episode.begin(self.cases[index], index)
        return seen(self.observer, self.episode), turn_info(self.episode)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Raises:
            EnvironmentUseError: the episode is over, or the action is not of the action space.
        """
        if self.episode.over:
            raise EnvironmentUseError("no episode is running; call reset() before step()")
        outcome = self.episode.act(action)
        reward, info = 0.0, turn_info(self.episode)
        if outcome is not None:
            result = self.episode.case.price([outcome])[0]
            reward, info = result.reward, last_info(self.episode, result, self.observer)
        return seen(self.observer, self.episode), reward, outcome is not None, False, info

    def action_masks(self) -> Bool[np.ndarray, "choices"]:
        """What may be chosen, all parts of the action in a row, as sb3-contrib's MaskablePPO asks
        for it (form ``node``).

        Raises:
            EnvironmentUseError: another form of actions.
        """
        if self.config.action != "node":
            raise EnvironmentUseError("action_masks() needs action='node'")
        space = self.episode.space
        sizes = [space.n] if isinstance(space, spaces.Discrete) else space.nvec
        mask = np.ones(int(np.sum(sizes)), np.bool_)
        if self.episode.places:
            devices = self.episode.action_mask()
            mask[: len(devices)] = devices
        return mask


def step_cases(config: StepConfig) -> list[StepCase]:
    """Return a case for each problem of a configuration."""
    return [StepCase(p, config.invalid_reward) for p in config.problems()]


def step_observer(config: StepConfig, cases: list[StepCase]) -> StepObserver:
    """Return what builds the observations, padded as configured."""
    graphs = [case.problem.graph for case in cases]
    return StepObserver(
        Observer(
            form=config.observation,
            max_nodes=config.max_nodes or max(g.num_nodes for g in graphs),
            max_edges=config.max_edges or max(1, *(g.num_edges for g in graphs)),
        )
    )


def space_of_actions(
    config: StepConfig, cases: list[StepCase], observer: StepObserver
) -> spaces.Discrete | spaces.MultiDiscrete:
    """Return the action space of a configuration."""
    devices = cases[0].problem.package.num_chips
    return step_action_space(config.action, cases[0].tasks, observer.max_nodes, devices)


def seen(observer: StepObserver, episode: StepEpisode) -> Any:
    """Return what the agent sees of an episode now."""
    case = episode.case
    devices = case.problem.package.num_chips
    return observer.observe(case.features, episode.progress(), episode.levels, devices)


def turn_info(episode: StepEpisode) -> dict[str, Any]:
    """Return the ``info`` of a reset or of a step that does not end the episode."""
    info: dict[str, Any] = {"graph": episode.index}
    if episode.form == "node":
        info["node"] = episode.current
        if episode.places:
            info["action_mask"] = episode.action_mask()
    return info


def last_info(episode: StepEpisode, result: StepResult, observer: StepObserver) -> dict[str, Any]:
    """Return the ``info`` of the step that ends the episode."""
    info = turn_info(episode) | {
        "status": result.status,
        "detail": result.detail,
        "seconds": result.seconds,
        "baseline_seconds": result.baseline_seconds,
    }
    for name in ("device", "priority", "fusion_group"):
        values = getattr(result, name)
        info[name] = np.full(observer.max_nodes, -1, values.dtype)
        info[name][: len(values)] = values
    return info
