"""Gymnasium environments, one for each task; importing this registers them.

``gymnasium.make("go_rl/Partition-v1", problem=problem)`` or ``graph="model.onnx",
hardware="ring6", rules="strict"``, where ``graph`` may also be ``"zoo:NAME"`` or a graph;
``gymnasium.make_vec`` gives the form that prices a batch.
``go_rl/Placement-v1``, ``go_rl/Schedule-v1``, ``go_rl/Fusion-v1`` and ``go_rl/Joint-v1`` shorten
the makespan on connected devices, such as ``hardware="p100x4"``.
"""

import gymnasium

from go_rl.envs.makespan.config import StepConfig
from go_rl.envs.makespan.env import StepEnv
from go_rl.envs.makespan.observation import STEP_NODE_FEATURES
from go_rl.envs.makespan.vector import StepVectorEnv
from go_rl.envs.observation import EDGE_FEATURES, NODE_FEATURES
from go_rl.envs.ring.config import PartitionConfig
from go_rl.envs.ring.env import PartitionEnv
from go_rl.envs.ring.vector import PartitionVectorEnv

__all__ = [
    "EDGE_FEATURES",
    "NODE_FEATURES",
    "STEP_NODE_FEATURES",
    "PartitionConfig",
    "PartitionEnv",
    "PartitionVectorEnv",
    "StepConfig",
    "StepEnv",
    "StepVectorEnv",
]

gymnasium.register(
    id="go_rl/Partition-v1",
    entry_point="go_rl.envs.ring.env:PartitionEnv",
    vector_entry_point="go_rl.envs.ring.vector:PartitionVectorEnv",
)

for _name, _tasks in {
    "Placement": ("placement",),
    "Schedule": ("schedule",),
    "Fusion": ("fusion",),
    "Joint": ("placement", "schedule", "fusion"),
}.items():
    gymnasium.register(
        id=f"go_rl/{_name}-v1",
        entry_point="go_rl.envs.makespan.env:StepEnv",
        vector_entry_point="go_rl.envs.makespan.vector:StepVectorEnv",
        kwargs={"tasks": _tasks},
    )
