"""Seconds for a plan: pipeline throughput on a ring, max-load, latency, and memory over time."""

from go_rl.simulate.allocator.allocate import Allocation, Buffers, allocate
from go_rl.simulate.allocator.check import check_allocation
from go_rl.simulate.host.latency import evaluate_latency, latency_batch
from go_rl.simulate.host.max_load import evaluate_max_load, max_load_batch
from go_rl.simulate.ring.memory import confirm_memory
from go_rl.simulate.ring.pricing import Pricer, RingPricer

__all__ = [
    "Allocation",
    "Buffers",
    "Pricer",
    "RingPricer",
    "allocate",
    "check_allocation",
    "confirm_memory",
    "evaluate_latency",
    "evaluate_max_load",
    "latency_batch",
    "max_load_batch",
]
