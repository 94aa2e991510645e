"""`PlanEnv`: plan a graph for one objective, one episode at a time.

Registered as `go_rl/Partition-v1`, `go_rl/Placement-v1`, `go_rl/Schedule-v1`, `go_rl/Fusion-v1` and
`go_rl/Joint-v1`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Float32, UInt8

from go_rl.core import EnvironmentUseError
from go_rl.envs.case import Case
from go_rl.envs.config import NODE_BY_NODE, EnvironmentConfig, read_config
from go_rl.envs.episode import Episode, action_space, check_running, choose_case
from go_rl.envs.observation import COLUMN, NODE_FEATURES, Observer
from go_rl.envs.rendering import RENDER_FPS, RENDER_MODES, check_render_mode, rendered


class PlanEnv(gymnasium.Env[Any, Any]):
    """One episode plans one graph; the reward comes at its end.

    Reward: on a ring the throughput over that of the reference plan (2.0: twice as fast), for
    makespan -sqrt(makespan / that of the reference plan) (-0.5: four times as fast), or another one
    of `go_rl.envs.rewards`; `failure_reward` where no usable plan comes out, out of memory
    included.

    A node is decided by its device (placement), its priority 0..19 (schedule; larger first, ties in
    topological order) and its fusion priority 0..19 (fusion; 0: not fused with its consumers), in
    this order; a single decision needs a single number. On a ring only placement is decided.

    Actions: ``node``: decisions for the next node in topological order; nodes that are copied, on a
    ring, and inputs and constants otherwise are left out. `info["action_mask"]`, a tuple where
    several things are decided, holds [devices] where the node may go (on a ring: what the solver
    still allows; otherwise devices that can run it, its pin, its colocation class), and [20] ones
    for priorities. A device outside it ends the episode as a failure, as any does where no plan
    exists; the mask then, and after the end, is of all devices.
    ``relative`` (ring): 0, the next node stays on the highest chip that a node was put on so far
    (at first 0), or 1, it advances to the one after it. The mask holds [stay, advance]; where the
    solver allows neither, 0 is the nearest chip that it allows.
    ``all`` (makespan): decisions for every node, one episode step; pins hold, and a colocation
    class follows its first node. ``fix`` (ring): a chip for every node, repaired by FIX.
    ``sample`` (ring): [nodes, chips] log-probabilities, drawn by SAMPLE.

    Observations: see `go_rl.envs.observation`. At the end ``info`` holds ``status`` (a `Status`),
    ``detail``, ``seconds``, ``reference_seconds`` and ``device``, for makespan also ``priority``
    and ``fusion_group`` (lowest node of the kernel), each [max_nodes], -1 for none. With
    ``fix`` and ``sample`` it says how the plan follows from the action: ``legalized_by`` (a `Means`
    in lower case), and where there is a plan ``displacement`` and, with ``sample``,
    ``log_prob_gap``, as in `go_rl.core.Fidelity`.
    `reset(options={"graph": i})` chooses a problem; otherwise it is drawn.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self, config: EnvironmentConfig | None = None, render_mode: str | None = None, **fields: Any
    ) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.config = read_config(config, fields)
        self.cases, self.observer, self.action_space = environment_parts(self.config)
        self.observation_space = self.observer.space
        self.episode = Episode(self.config.action, self.action_space)

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
        outcome = self.episode.act(action, self.np_random)
        reward, info = self.episode.shaping, self.episode.info()
        if outcome is not None:
            result = self.episode.case.evaluate([outcome])[0]
            reward += result.reward
            info = self.episode.finish(result, self.observer.max_nodes)
        return self.episode.observe(self.observer), reward, outcome is not None, False, info

    def render(self) -> str | UInt8[np.ndarray, "H W 3"]:
        """Return the episode as text (``render_mode="ansi"``) or as a picture (``rgb_array``).

        Raises:
            EnvironmentUseError: the environment was made without a mode, or was never reset.
        """
        return rendered(self.render_mode, self.episode)

    def action_masks(self) -> Bool[np.ndarray, "choices"]:
        """`info["action_mask"]`, all parts of an action in a row, as sb3-contrib's MaskablePPO
        asks for it (forms ``node`` and ``relative``).

        Raises:
            EnvironmentUseError: another form of actions.
        """
        if self.episode.form not in NODE_BY_NODE:
            raise EnvironmentUseError("action_masks() needs action='node' or 'relative'")
        mask = self.episode.action_mask()
        return np.concatenate(mask if isinstance(mask, tuple) else (mask,)).astype(np.bool_)


def environment_parts(config: EnvironmentConfig) -> tuple[list[Case], Observer, spaces.Space[Any]]:
    """Return a case for each problem, what builds observations, and the action space."""
    problems = config.problems()
    observer = config.observer(problems)
    cases = [Case(problem, config.reward_name, config.failure_reward) for problem in problems]
    space = action_space(config.action, cases[0].decided, observer.max_nodes, observer.devices)
    return cases, observer, space


class CurrentNode(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The features of the node whose turn it is, the load of each chip and the work that is left,
    both over the mean load of a chip: as short for a large graph as for a small one.

    Raises:
        EnvironmentUseError: not an environment of a ring with observations of form ``dict``.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        plan_env = env.unwrapped
        if not isinstance(plan_env, PlanEnv) or plan_env.observer.priorities:
            raise EnvironmentUseError(f"CurrentNode needs go_rl/Partition-v1, not {env}")
        if plan_env.observer.form != "dict":
            raise EnvironmentUseError(
                f"CurrentNode needs observation='dict', not {plan_env.observer.form!r}"
            )
        self.num_devices = plan_env.observer.devices
        shape = (len(NODE_FEATURES) + self.num_devices + 1,)
        self.observation_space = gymnasium.spaces.Box(-1.0, np.inf, shape, np.float32)

    def observation(self, observation: dict[str, Any]) -> Float32[np.ndarray, "numbers"]:
        """Return [F + devices + 1] node features, loads and what is left; ``seconds_share`` counts
        at most 1 of a node. At the end the node is the first one."""
        nodes = observation["nodes"]
        device = np.rint(nodes[:, COLUMN["device"]] * max(self.num_devices - 1, 1)).astype(np.int64)
        left = self.num_devices  # behind the loads: nodes whose turn has not passed
        where = np.where(nodes[:, COLUMN["decided"]] > 0, device, left)
        loads = np.bincount(where, nodes[:, COLUMN["seconds_share"]], self.num_devices + 1)
        current = nodes[nodes[:, COLUMN["current"]].argmax()]
        return np.concatenate([current, loads]).astype(np.float32)
