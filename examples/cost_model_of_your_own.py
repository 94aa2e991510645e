"""Price operators with a cost model of your own: partition, schedule and fuse under it, check the
plans, and give it to an environment.

    python examples/cost_model_of_your_own.py --model zoo:bert-tiny --seconds 10

The model here is of devices with two units, as many accelerators have them: matrix products and
convolutions run on a matrix unit at the device's peak rate, everything else on a vector unit that
is 64 times as slow.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float64

import go_rl
import go_rl.envs  # registers the environments
from go_rl.core import Device, GoRLError, OpKind
from go_rl.costs.models import Kernels

ON_MATRIX_UNIT = (OpKind.MATMUL, OpKind.CONVOLUTION)
FREE = (OpKind.INPUT, OpKind.CONSTANT)


@dataclass(frozen=True)
class MatrixAndVectorUnit:
    """A `go_rl.costs.models.CostModel`: any object with ``name`` and ``seconds``; no base class."""

    name: str = "matrix-and-vector-unit"
    """Name in plans and tables."""
    slower: float = 64.0
    """Rate of the matrix unit over that of the vector unit."""

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds of each kernel; inf marks one that the device cannot run."""
        matrix = np.isin(kernels.kind, ON_MATRIX_UNIT)
        rate = np.where(matrix, device.peak_flops, device.peak_flops / self.slower)
        arithmetic = kernels.flops / rate
        traffic = kernels.bytes_accessed / device.memory_bandwidth
        streamed = kernels.streamed_bytes / device.host_bandwidth
        seconds = np.maximum(np.maximum(arithmetic, traffic), streamed) + device.launch_seconds
        return np.where(np.isin(kernels.kind, FREE), 0.0, seconds)


def random_episode(model: str, cost: MatrixAndVectorUnit) -> tuple[float, Any]:
    """One episode of the fusion environment with random legal actions; reward and status."""
    env = gymnasium.make("go_rl/Fusion-v1", graph=model, hardware="p100x2", cost=cost)
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    done, reward = False, 0.0
    while not done:
        action = env.action_space.sample(mask=info["action_mask"])
        _, reward, done, _, info = env.step(action)
    return float(reward), info["status"]


def main(arguments: list[str] | None = None) -> None:
    """Plan one model under both cost models, and show that the prices decide."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="zoo:resnet18", help="what go_rl.load reads")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each search")
    parser.add_argument("--samples", type=int, help="of each search, instead of seconds")
    parser.add_argument("--method", default="auto", help="auto, annealing, metis or random")
    args = parser.parse_args(arguments)
    limit = {"samples": args.samples} if args.samples is not None else {"seconds": args.seconds}
    search = {"method": args.method, **limit}
    mine = MatrixAndVectorUnit()
    for cost in ("analytical", mine):
        ring = go_rl.optimize(args.model, "ring4", cost=cost, **search)
        # A plan is judged under the problem that it was made for; a plan.json priced by a model
        # of your own is checked so, too: go_rl.check("plan.json", ring.problem).
        assert go_rl.check(ring.best, ring.problem).ok
        joint = go_rl.optimize(args.model, "p100x2", cost=cost, **search)
        assert go_rl.check(joint.best, joint.problem).ok
        print(f"{ring.best.cost_model}: ring of four devices {1e3 * ring.best.value:.4g} ms, "
              f"two connected devices {1e3 * joint.best.value:.4g} ms")  # fmt: skip
    reward, status = random_episode(args.model, mine)
    print(f"random fusion under {mine.name}: reward {reward:.3f} ({status})")


if __name__ == "__main__":
    try:
        main()
    except GoRLError as error:  # its message is a sentence for the user
        sys.exit(str(error))
