"""Train an off-the-shelf agent on `go_rl/Partition-v1`, to show that the interface is standard.

    python examples/train_off_the_shelf_agent.py --steps 20000

sb3-contrib's MaskablePPO partitions a small residual network, or any model file, node by node: each
node stays on the chip that was reached or advances to the next, and a shaped reward says at once
what a move costs. Throughput is over that of the compiler heuristic.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np

from go_rl.core import MissingDependencyError, OpKind, load_hardware
from go_rl.costs.models import make_problem
from go_rl.envs import CurrentNode  # importing it registers the environment
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def throughput(agent: Any, env: Any) -> float:
    """Return the throughput of an episode of the agent over the heuristic's."""
    seen, _ = env.reset()
    while True:
        masks = env.get_wrapper_attr("action_masks")()
        action, _ = agent.predict(seen, action_masks=masks)
        seen, _, ended, _, info = env.step(int(action))
        if ended:
            return info["reference_seconds"] / info["seconds"]


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
    """Train, and compare with the agent before it has learned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", help="model file or zoo:NAME; default: a small network")
    parser.add_argument("--hardware", default="ring4")
    parser.add_argument("--steps", type=int, default=20_000)
    args = parser.parse_args()
    try:
        import torch
        from sb3_contrib import MaskablePPO
    except ImportError as error:
        raise MissingDependencyError(
            "this example needs sb3-contrib: pip install sb3-contrib"
        ) from error
    torch.set_num_threads(1)  # a network this small gains nothing from more
    model = {"problem": residual_network()}
    if args.graph:
        model = {"graph": args.graph, "hardware": args.hardware}
    env = CurrentNode(gymnasium.make(
        "go_rl/Partition-v1", action="relative", reward="shaped-speed-up", **model
    ))  # fmt: skip
    agent = MaskablePPO(
        "MlpPolicy", env, device="cpu", seed=0, learning_rate=lambda left: 1e-3 * left,
        n_steps=512, batch_size=128, gamma=1.0, gae_lambda=0.5, target_kl=0.03,
    )  # fmt: skip
    for label, steps in (("untrained", 0), ("trained", args.steps)):
        agent.learn(steps) if steps else None
        found = [throughput(agent, env) for _ in range(30)]
        print(f"{label}: throughput over the heuristic {np.mean(found):.3f} +- {np.std(found):.3f}")


if __name__ == "__main__":
    main()
