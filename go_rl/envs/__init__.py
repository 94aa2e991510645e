"""Gymnasium environments, one for each task; importing this registers them.

``gymnasium.make("go_rl/Partition-v0", problem=problem)`` or ``graph="model.onnx",
package="ring6", rules="strict"``; ``gymnasium.make_vec`` gives the form that prices a batch.
"""

import gymnasium

from go_rl.envs.observation import EDGE_FEATURES, NODE_FEATURES
from go_rl.envs.partition import PartitionEnv
from go_rl.envs.partition_config import PartitionConfig
from go_rl.envs.partition_vector import PartitionVectorEnv

__all__ = [
    "EDGE_FEATURES",
    "NODE_FEATURES",
    "PartitionConfig",
    "PartitionEnv",
    "PartitionVectorEnv",
]

gymnasium.register(
    id="go_rl/Partition-v0",
    entry_point="go_rl.envs.partition:PartitionEnv",
    vector_entry_point="go_rl.envs.partition_vector:PartitionVectorEnv",
)
