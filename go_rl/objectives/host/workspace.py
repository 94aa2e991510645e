"""Workspace of max-load and latency methods: blocks, seconds, failures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np

from go_rl.core import Evaluation, Objective, Problem, Status
from go_rl.core.decisions import Decisions, Scored
from go_rl.objectives.common.workspace import Workspace, first_usable
from go_rl.objectives.host.bounds import latency_bound, max_load_bound
from go_rl.objectives.host.greedy import greedy_latency, greedy_max_load
from go_rl.objectives.host.hypergraph import Contraction, contract_problem
from go_rl.objectives.host.latency_blocks import LatencyBlocks, latency_blocks
from go_rl.objectives.host.orders import block_orders, latency_orders
from go_rl.objectives.host.simulate.latency import evaluate_latency, latency_batch
from go_rl.objectives.host.simulate.max_load import evaluate_max_load, max_load_batch


class HostWorkspace(Workspace):
    """Blocks and prices of one max-load or latency problem; parts are built when first used."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._is_latency = problem.objective is Objective.LATENCY

    @cached_property
    def blocks(self) -> LatencyBlocks:
        """Blocks of the latency objective: nodes that no contiguous split can separate."""
        return latency_blocks(self.problem)

    @cached_property
    def contraction(self) -> Contraction:
        """Blocks of nodes that share a device."""
        return self.blocks.contraction if self._is_latency else contract_problem(self.problem)

    @property
    def target(self) -> float:
        """None: methods raise the bound themselves, for that of max-load takes a while."""
        return 0.0

    @cached_property
    def bound(self) -> float:
        """A proven lower bound: the critical path, or what work alone does not refute."""
        return (latency_bound if self._is_latency else max_load_bound)(self.problem)

    def greedy(self) -> Iterator[tuple[Decisions | None, Evaluation]]:
        """Yield the compiler heuristic's plan, or why there is none."""
        contraction, graph = self.contraction, self.problem.graph
        if self._is_latency:
            order = latency_orders(self.blocks, 0, 2)[-1]
            device, cure = greedy_latency(self.blocks, order), ", or CPUs"
        else:
            order = block_orders(self.problem, contraction, 0, 1)[0]
            device, cure = greedy_max_load(contraction, order), " or turn memory off"
        if device is None:
            yield (
                None,
                self.failed(
                    Status.GAVE_UP,
                    f"graph {graph.name!r}: the topological fill finds no room for some nodes on "
                    f"hardware {self.problem.hardware.name!r}; give it more memory{cure}",
                ),
            )
        else:
            decisions = Decisions(device[contraction.block][None])
            yield decisions, self.detail(decisions)

    @cached_property
    def reference(self) -> Decisions:
        """The compiler heuristic's plan; everything on device 0 where it places nothing."""
        return first_usable(self.problem, self.greedy())

    @cached_property
    def reference_seconds(self) -> float:
        """Seconds of `reference`; where it fails, of all work on the fastest devices."""
        seconds = float(self.evaluate(self.reference).seconds[0])
        return seconds if np.isfinite(seconds) else float(self.problem.seconds.min(axis=0).sum())

    @cached_property
    def infeasible(self) -> Evaluation | None:
        """Failure that names a node of a block that no device can hold; None where there is
        none."""
        contraction = self.contraction
        lost = np.flatnonzero(~contraction.hypergraph.allowed.any(axis=1))
        if not lost.size:
            return None
        node = self.problem.graph.names[int(np.flatnonzero(contraction.block == lost[0])[0])]
        return self.failed(
            Status.INFEASIBLE,
            f"no device can hold node {node!r} with all nodes that must share its device",
        )

    @property
    def gave_up(self) -> Evaluation:
        """Failure of a search whose budget ended without a plan."""
        return self.failed(
            Status.GAVE_UP,
            "no assignment that fits the devices' memory was found within the budget",
        )

    def evaluate(self, decisions: Decisions) -> Scored:
        batch = latency_batch if self._is_latency else max_load_batch
        return Scored(decisions, *batch(self.problem, decisions.device))

    def detail(self, decisions: Decisions, row: int = 0) -> Evaluation:
        evaluate = evaluate_latency if self._is_latency else evaluate_max_load
        return evaluate(self.problem, decisions.device[row])

    def with_copies(self, decisions: Decisions) -> Decisions:
        """Return the decisions: nothing is copied."""
        return decisions


@lru_cache(maxsize=4)
def host_workspace(problem: Problem) -> HostWorkspace:
    """Return the workspace of a problem, shared by all methods that work on it."""
    return HostWorkspace(problem)
