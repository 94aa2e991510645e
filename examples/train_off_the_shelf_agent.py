"""Train an off-the-shelf agent on `go_rl/Partition-v1`, to show that the interface is standard.

    python examples/train_off_the_shelf_agent.py --steps 40000

Stable-Baselines3's PPO partitions a small residual network, or any model file, node by node. A
reward above 1 means more throughput than the compiler heuristic; 40,000 steps do not get there.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation

import go_rl.envs  # noqa: F401  (registers the environment)
from go_rl.core import MissingDependencyError, OpKind, load_hardware
from go_rl.cost import make_problem
from go_rl.readers.graph_builder import GraphBuilder, Node


class NearestLegalChip(gymnasium.ActionWrapper[Any, Any, Any]):
    """PPO knows no masks: its chip is moved to the nearest one that the solver still allows."""

    def action(self, action: Any) -> int:
        """Return the allowed chip nearest to the agent's."""
        allowed = np.flatnonzero(self.get_wrapper_attr("action_masks")())
        return int(allowed[np.abs(allowed - int(action)).argmin()]) if allowed.size else int(action)


def residual_network(blocks: int = 8) -> Any:
    """Two uneven layers a block and a connection around them, on a ring of four chips."""
    builder = GraphBuilder("small residual network")
    last = builder.add_node(Node("input", "Input", OpKind.INPUT, output_bytes=1e4))
    for b in range(blocks):
        begin = last
        for part, giga in (("wide", 1 + b % 3), ("narrow", 0.5)):
            cost = {"flops": giga * 1e9, "bytes_accessed": 1e5, "weight_bytes": 1e6}
            node = Node(f"{part}{b}", "Conv", OpKind.CONVOLUTION, output_bytes=1e4, **cost)
            builder.add_edge(last, last := builder.add_node(node), 1e4)
        join = builder.add_node(Node(f"add{b}", "Add", OpKind.ELEMENTWISE, output_bytes=1e4))
        builder.add_edge(last, join, 1e4)
        builder.add_edge(begin, join, 1e4)
        last = join
    return make_problem(builder.build(), load_hardware("ring4"))


def main() -> None:
    """Train, and compare with chips drawn at random."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", help="model file; default: a small residual network")
    parser.add_argument("--hardware", default="ring4")
    parser.add_argument("--steps", type=int, default=40_000)
    args = parser.parse_args()
    try:
        import torch
        from stable_baselines3 import PPO
        from stable_baselines3.common.evaluation import evaluate_policy
    except ImportError as error:
        raise MissingDependencyError(
            "this example needs stable-baselines3: pip install stable-baselines3"
        ) from error
    torch.set_num_threads(1)  # a network this small gains nothing from more
    model = {"problem": residual_network()}
    if args.graph:
        model = {"graph": args.graph, "hardware": args.hardware}
    env = NearestLegalChip(FlattenObservation(gymnasium.make("go_rl/Partition-v1", **model)))
    agent = PPO("MlpPolicy", env, device="cpu", n_steps=1024, gamma=1.0, ent_coef=0.01, seed=0)
    for label, steps in (("untrained", 0), ("trained", args.steps)):
        agent.learn(steps) if steps else None
        mean, spread = evaluate_policy(agent, env, n_eval_episodes=30, deterministic=False)
        print(f"{label}: throughput over the heuristic {mean:.3f} +- {spread:.3f}")


if __name__ == "__main__":
    main()
