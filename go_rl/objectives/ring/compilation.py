"""The first run on a machine: the ring's code is compiled in two processes side by side.

Numba compiles a function when it is first called and keeps the machine code on disk. The process
that the user waits for compiles the solver; a second one compiles the other parts in the order in
which a run needs them. Where everything is on disk no process is started.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from go_rl.core import Objective, Problem
from go_rl.core.optimizer import Milestone
from go_rl.objectives.common.tiny_problem import tiny_problem
from go_rl.objectives.common.units import ring_units
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.objectives.ring.ideals.ideal_dp import Limits, stages_within
from go_rl.objectives.ring.ideals.states import grow_layers, read_stages
from go_rl.objectives.ring.linear_cuts import LinearCuts, compiled_of_cuts
from go_rl.objectives.ring.orders import depth_first, list_order
from go_rl.objectives.ring.side_by_side import SideBySide
from go_rl.objectives.ring.simulate.compiled_pricing import price_range, price_whole
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.runtime.warm_worker import WarmWorker, WorkerError
from go_rl.solvers.network import Network, new_state
from go_rl.solvers.propagation import fill
from go_rl.solvers.ring_instance import ring_instance
from go_rl.solvers.ring_solver import search_uniform, to_nodes
from go_rl.solvers.tree_search import search

LONGEST = 600.0
"""Seconds that the second process gets for one part."""


def _solver(strict: bool) -> None:
    """The tree search, on a single block."""
    none, one, rows = np.zeros(0, np.int64), np.ones(1, np.int64), np.zeros(2, np.int64)
    net = Network(
        chips=1, pred_ptr=rows, pred=none, succ_ptr=rows, succ=none,
        triple=np.zeros((0, 3), np.int64), triple_ptr=rows, triple_of=none,
        weight=one, heavy=none, group_ptr=rows, group=none, group_bytes=none, capacity=one,
        start=one, after=one, triangle=strict, all_chips=False, memory=True, spare=0,
    )  # fmt: skip
    state = new_state(net)
    fill(net, state)
    search_uniform(net, state, 0)


def _pricing(strict: bool) -> None:
    """The reduction to blocks, the quick bound, and the simulator."""
    problem = tiny_problem(Objective.RING, strict)
    instance, nodes = ring_instance(problem), problem.graph.num_nodes
    ring_units(instance)
    ring_bound(instance)
    pricer, device = RingPricer(problem), np.zeros((1, nodes), np.int16)
    pricer.price(device)
    pricer.evaluate(device[0])
    offsets, edges = problem.graph.successors
    blocks = np.zeros(instance.num_blocks)
    to_nodes(
        instance.block_of, instance.replicated, instance.leader,
        (offsets, problem.graph.receivers[edges]), blocks.astype(np.int16), blocks.astype(np.int64),
        np.zeros(nodes, np.int16), np.zeros(nodes, np.int64),
    )  # fmt: skip


def _cuts(strict: bool) -> None:
    """Topological orders and their best cuts, of all kinds that the rules allow."""
    units = ring_units(ring_instance(tiny_problem(Objective.RING, strict)))
    score = np.zeros(units.num_units)
    for order in (list_order(units, score), depth_first(units, score)):
        cuts = LinearCuts(units, order, strict)
        for exactly in (False, True):
            cuts.best(0.0, units.serial_seconds, 2, np.inf, exactly)
    if strict:
        SideBySide(cuts, 2).best(0.0, units.serial_seconds, np.inf)


def _ideals(strict: bool) -> None:
    """Dynamic programming over ideals."""
    units = ring_units(ring_instance(tiny_problem(Objective.RING, strict)))
    stages_within(units, Limits(units.serial_seconds, 2, np.inf, strict, 4))


PARTS: dict[str, tuple[Callable[[bool], None], tuple[Any, ...]]] = {
    "solver": (_solver, (search,)),
    "pricing": (_pricing, (price_range, price_whole, to_nodes)),
    "cuts": (_cuts, compiled_of_cuts()),
    "ideals": (_ideals, (grow_layers, read_stages)),
}
"""Parts that are compiled together, each with the functions that tell whether it was, in order of
need."""
PARTS_OF = {
    "greedy": ("solver", "pricing"),
    "policy": ("cuts",),
    "linear-dp": ("cuts",),
    "order-search": ("cuts",),
    "order-policy": ("cuts",),
    "unit-annealing": ("cuts",),
    "ideal-dp": ("ideals", "cuts"),
}
"""Names in `PARTS` by the first method that needs them; the heuristic always runs."""


def compile_part(request: tuple[str, bool]) -> str:
    """Compile one part, or load it from disk; what the second process does."""
    part, strict = request
    PARTS[part][0](strict)
    return part


def is_compiled(function: Any) -> bool:
    """Whether this process, or Numba's cache, has machine code of a function as its source is now.

    Without a compiler (``NUMBA_DISABLE_JIT``) there is nothing to compile.
    """
    if not hasattr(function, "signatures"):
        return True
    # Only Numba knows how it marks what it keeps; its index is empty for another source.
    return bool(function.signatures or function._cache._cache_file._load_index())


class RingCompilation:
    """Context in which a ring problem is solved; `need` waits until a part is compiled."""

    def __init__(self, problem: Problem, tell: Callable[[str], None]) -> None:
        self._strict, self._tell = problem.rules.triangle, tell
        self._missing = [
            name for name, (_, heads) in PARTS.items() if not all(map(is_compiled, heads))
        ]
        self.first_run = bool(self._missing)
        self._worker: WarmWorker | None = None
        self._pool = ThreadPoolExecutor(1)
        self._waiting: dict[str, Future[Any]] = {}

    def __enter__(self) -> RingCompilation:
        beside = [name for name in self._missing if name != "solver"]
        if self.first_run:
            self._tell(
                Milestone("compiling methods, once on this machine; the budget does not count it")
            )
        if beside:
            self._worker = WarmWorker("go_rl.objectives.ring.compilation:compile_part")
            for part in beside:
                request = part, self._strict
                self._waiting[part] = self._pool.submit(self._worker.call, request, LONGEST)
        return self

    def __exit__(self, *raised: object) -> None:
        for waiting in self._waiting.values():
            waiting.cancel()
        if self._worker is not None:
            self._pool.submit(self._worker.close)  # after the call that is cut short: it is reaped
            self._worker.stop()
        self._pool.shutdown(wait=False)

    def need(self, *parts: str) -> None:
        """Have parts compiled. A second process that fails costs time only: the functions are then
        compiled here."""
        for part in parts:
            if part not in self._missing:
                continue
            done = len(PARTS) - len(self._missing)
            self._tell(f"compiling methods: {done} of {len(PARTS)} parts")
            if (waiting := self._waiting.get(part)) is not None:
                with suppress(WorkerError):
                    waiting.result()
            compile_part((part, self._strict))
            self._missing.remove(part)
