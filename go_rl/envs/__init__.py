"""Gymnasium environments; importing this registers them, as ``gymnasium.make`` does by itself for
names such as ``go_rl.envs:go_rl/Partition-v1``.

``gymnasium.make("go_rl/Partition-v1", problem=problem)`` or ``graph="model.onnx",
hardware="ring6", rules="strict"``, where ``graph`` may also be ``"zoo:NAME"`` or a graph, is for
a ring of chips; ``gymnasium.make_vec`` gives the form that evaluates a batch.
``go_rl/Placement-v1``, ``go_rl/Schedule-v1``, ``go_rl/Fusion-v1`` and ``go_rl/Joint-v1`` shorten
the makespan on connected devices, such as ``hardware="p100x4"``. ``render_mode`` is one of
`RENDER_MODES`.
"""

import gymnasium

from go_rl.envs.config import EnvironmentConfig
from go_rl.envs.environment import CurrentNode, PlanEnv
from go_rl.envs.observation import EDGE_FEATURES, MAKESPAN_NODE_FEATURES, NODE_FEATURES
from go_rl.envs.rendering import RENDER_MODES
from go_rl.envs.vector import PlanVectorEnv

__all__ = [
    "EDGE_FEATURES",
    "MAKESPAN_NODE_FEATURES",
    "NODE_FEATURES",
    "RENDER_MODES",
    "CurrentNode",
    "EnvironmentConfig",
    "PlanEnv",
    "PlanVectorEnv",
]

for _name, _fields in {
    "Partition": {"objective": "ring"},
    "Placement": {"objective": "makespan", "decide": ("placement",)},
    "Schedule": {"objective": "makespan", "decide": ("schedule",)},
    "Fusion": {"objective": "makespan", "decide": ("fusion",)},
    "Joint": {"objective": "makespan", "decide": ("placement", "schedule", "fusion")},
}.items():
    gymnasium.register(
        id=f"go_rl/{_name}-v1",
        entry_point="go_rl.envs.environment:PlanEnv",
        vector_entry_point="go_rl.envs.vector:PlanVectorEnv",
        kwargs=_fields,
    )
