"""Seconds for a plan: pipeline throughput on a ring, max-load, latency, and memory over time."""

from go_rl.simulate.allocator import Allocation, Buffers, allocate
from go_rl.simulate.allocator_check import check_allocation
from go_rl.simulate.evaluate import CopyingPricer, Pricer, pricer
from go_rl.simulate.latency import evaluate_latency, latency_batch
from go_rl.simulate.max_load import evaluate_max_load, max_load_batch
from go_rl.simulate.ring import RingPricer
from go_rl.simulate.ring_memory import confirm_memory

__all__ = [
    "Allocation",
    "Buffers",
    "CopyingPricer",
    "Pricer",
    "RingPricer",
    "allocate",
    "check_allocation",
    "confirm_memory",
    "evaluate_latency",
    "evaluate_max_load",
    "latency_batch",
    "max_load_batch",
    "pricer",
]
