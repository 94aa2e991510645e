"""`CurrentNode`: a short observation for agents that take a row of numbers."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float32

from go_rl.core import EnvironmentUseError
from go_rl.envs.environment import PlanEnv
from go_rl.envs.observation import COLUMN, NODE_FEATURES


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
        self.chips = plan_env.observer.devices
        shape = (len(NODE_FEATURES) + self.chips + 1,)
        self.observation_space = gymnasium.spaces.Box(-1.0, np.inf, shape, np.float32)

    def observation(self, observation: dict[str, Any]) -> Float32[np.ndarray, "numbers"]:
        """Return [F + chips + 1] node features, loads and what is left; ``seconds_share`` counts
        at most 1 of a node. At the end the node is the first one."""
        nodes = observation["nodes"]
        chip = np.rint(nodes[:, COLUMN["chip"]] * max(self.chips - 1, 1)).astype(np.int64)
        left = self.chips  # behind the loads: nodes whose turn has not passed
        where = np.where(nodes[:, COLUMN["decided"]] > 0, chip, left)
        loads = np.bincount(where, nodes[:, COLUMN["seconds_share"]], self.chips + 1)
        current = nodes[nodes[:, COLUMN["current"]].argmax()]
        return np.concatenate([current, loads]).astype(np.float32)
