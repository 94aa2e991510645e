"""The least seconds of any plan of a tiny makespan problem, by trying all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from reference.ring_rules import classes_together

from go_rl.core import KernelPrices, Problem
from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.verify.kernel_rules import legal_kernels

Order = tuple[int, ...]


@dataclass(frozen=True)
class Remembered:
    """`KernelPrices` of few different kernels, priced once."""

    prices: KernelPrices
    known: dict[bytes, np.ndarray]

    def seconds(self, leader: np.ndarray) -> np.ndarray:
        """See `go_rl.core.KernelPrices`."""
        key = leader.tobytes()
        if key not in self.known:
            self.known[key] = self.prices.seconds(leader)
        return self.known[key]


def partitions(count: int) -> Iterator[list[int]]:
    """Every way to put nodes into kernels, named by their lowest node."""
    for choice in product(*(range(n + 1) for n in range(count))):
        if all(choice[lead] == lead for lead in choice):
            yield list(choice)


def weak_orders(count: int) -> list[Order]:
    """Priorities of every order of nodes, ties included; ties decide what no strict order does."""
    return [p for p in product(range(count), repeat=count) if set(p) == set(range(max(p) + 1))]


def best_of_all(problem: Problem, orders: Sequence[Order]) -> float:
    """The least seconds of every legal placement and fusion, in some orders; inf: nothing fits.

    Tasks that are not asked for stay undecided; pins and classes hold.
    """
    count = problem.graph.num_nodes
    fusing = "fusion" in problem.decisions
    orders = orders if "schedule" in problem.decisions else [(0,) * count]
    nowhere = np.zeros(count, np.int16)
    plans = []
    for leader in partitions(count) if fusing else [list(range(count))]:
        if fusing and legal_kernels(problem, nowhere, None, np.array(leader)):
            continue
        for homes in placements(problem):
            if all(homes[n] == homes[lead] for n, lead in enumerate(leader)):
                plans += [(homes, order, leader) for order in orders]
    if not plans:
        return float("inf")
    device, priority, leader = (np.array(rows) for rows in zip(*plans, strict=True))
    if problem.kernels is not None:
        problem = replace(problem, kernels=Remembered(problem.kernels, {}))
    seconds, _ = MakespanPricer(problem).price(Decisions(device.astype(np.int16), priority, leader))
    return float(seconds.min())


def placements(problem: Problem) -> Iterator[Order]:
    """Devices of all nodes that keep pins and colocation classes."""
    for homes in product(range(problem.hardware.num_devices), repeat=problem.graph.num_nodes):
        pinned = all(homes[n] == d for n, d in problem.fixed.items())
        if pinned and classes_together(problem, homes):
            yield homes
