"""Train an off-the-shelf agent on `go_rl/Partition-v1`, to show that the interface is standard.

    python examples/train_off_the_shelf_agent.py --steps 40000

sb3-contrib's MaskablePPO (``pip install "go_rl[agents]"``) partitions a small graph of the zoo, or
any model file, node by node: each node stays on the chip that was reached or advances to the next,
and a shaped reward says at once what a move costs. Throughput is over that of the compiler
heuristic.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import gymnasium
import numpy as np

from go_rl.core import GoRLError, MissingDependencyError
from go_rl.envs import CurrentNode  # importing it registers the environment


def made(graph: str, hardware: str) -> Any:
    """Return the environment, seen by `CurrentNode`."""
    return CurrentNode(gymnasium.make(
        "go_rl/Partition-v1", graph=graph, hardware=hardware, action="relative",
        reward="shaped-speed-up",
    ))  # fmt: skip


def new_agent(env: Any, seed: int) -> Any:
    """Return an agent that has not learned."""
    try:
        import torch
        from sb3_contrib import MaskablePPO
    except ImportError as error:
        raise MissingDependencyError(
            'this example needs sb3-contrib: pip install "go_rl[agents]"'
        ) from error
    torch.set_num_threads(1)  # a network this small gains nothing from more
    return MaskablePPO(
        "MlpPolicy", env, device="cpu", seed=seed, learning_rate=lambda left: 1e-3 * left,
        n_steps=512, batch_size=128, gamma=1.0, gae_lambda=0.5, target_kl=0.03,
    )  # fmt: skip


def throughput(agent: Any, env: Any) -> float:
    """Return the throughput of an episode of the agent over the heuristic's."""
    seen, _ = env.reset()
    while True:
        masks = env.get_wrapper_attr("action_masks")()
        action, _ = agent.predict(seen, action_masks=masks)
        seen, _, ended, _, info = env.step(int(action))
        if ended:
            return info["reference_seconds"] / info["seconds"]


def main() -> None:
    """Train, and compare with the agent before it has learned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="zoo:vae-3-layers", help="model file or zoo:NAME")
    parser.add_argument("--hardware", default="ring4")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.steps < 1 or args.seed not in range(2**31):
        parser.error("--steps must be >= 1, --seed >= 0 and below 2^31")
    env = made(args.graph, args.hardware)
    agent = new_agent(env, args.seed)
    for label, steps in (("untrained", 0), ("trained", args.steps)):
        agent.learn(steps) if steps else None
        found = [throughput(agent, env) for _ in range(30)]
        print(f"{label}: throughput over the heuristic {np.mean(found):.3f} +- {np.std(found):.3f}")


if __name__ == "__main__":
    try:
        main()
    except GoRLError as error:  # its message is a sentence for the user
        sys.exit(str(error))
