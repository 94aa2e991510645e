"""Training iterations in micro-batches: what the search makes of them, beside splits by hand.

Run: ``python -m experiments placement.micro_batches``. ``auto`` gets its seconds; ``layers-equal``
is a pipeline by hand, consecutive layers of equal work on each device; ``data-parallel`` runs
micro-batch i on device i modulo the devices, weights updated where micro-batch 0 runs. Both have
the best of their orders, fused and not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import flax.linen as nn
import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.compare.portfolio.portfolio import run
from go_rl.core import Budget, OpGraph, Plan
from go_rl.core.graph.micro_batch import WHOLE, micro_batch_of
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches
from go_rl.graphs.zoo.models.building import Built, flax_model, floats, integers, training
from go_rl.graphs.zoo.models.language.transformers import GPT
from go_rl.objectives.makespan.choices import NOWHERE, softly_placed
from go_rl.objectives.makespan.infer_devices import infer_devices
from go_rl.objectives.makespan.methods.composed import Order, composition
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace

PARTS = (1, 2, 4, 8)
HARDWARE = "p100x4"
COST = "learned:gpus"
METHODS = ("auto", "layers-equal", "data-parallel")

ABOUT = f"""\
Milliseconds of an iteration on {HARDWARE} by the prices of `{COST}`, and beside them the share of
the bytes of weights that several devices read: 0 % in a pipeline, 100 % in data parallelism. With
more than one micro-batch, a weight that is copied so pays for the way back of its update; the
undivided iteration (N = 1) does not, which flatters it."""


class Perceptron(nn.Module):
    """Dense layers of one width with ReLU between them."""

    layers: int = 8
    width: int = 2048

    @nn.compact
    def __call__(self, x):
        for _ in range(self.layers):
            x = nn.relu(nn.Dense(self.width)(x))
        return x


NETWORKS: dict[str, Callable[[], Built]] = {
    "transformer": lambda: training(
        flax_model(GPT(4, 512, 8, vocabulary=1000, positions=128), integers(32, 128))
    ),
    "perceptron": lambda: training(flax_model(Perceptron(), floats(4096, 2048))),
}


@dataclass(frozen=True)
class Row:
    """One method on one network in some micro-batches."""

    network: str
    parts: int
    nodes: int
    method: str
    milliseconds: float
    """Time of an iteration."""
    copied: float
    """Share of the bytes of weights that are read on more than one device."""


@dataclass(frozen=True)
class MicroBatches(Experiment):
    """Options of this experiment."""

    seconds: float = 10.0
    """Budget of ``auto``."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        kept.fill(product(NETWORKS, PARTS), self.rows)
        self.write_page(page(kept.rows))

    def rows(self, network: str, parts: int) -> Iterator[Row]:
        """Yield the rows of one network in some micro-batches."""
        function, args, weights = NETWORKS[network]()
        if parts > 1:
            function = in_micro_batches(function, args, weights, parts)
        graph = trace_jax(function, *args, weights=weights, name=network)
        problem = problem_for(graph, OptimizeOptions("makespan", hardware=HARDWARE, cost=COST))

        def row(method: str, milliseconds: float, device: np.ndarray) -> Row:
            copied = copied_share(graph, device)
            return Row(network, parts, graph.num_nodes, method, milliseconds, copied)

        best = run(problem, "auto", Budget(seconds=self.seconds)).best
        yield row("auto", 1e3 * best.value, best.device)
        plans = run(problem, "layers-equal", Budget(samples=100)).plans
        own: Plan = next(plan for plan in plans if plan.optimizer == "layers-equal")
        yield row("layers-equal", 1e3 * own.value, own.device)
        if parts > 1:
            workspace = makespan_workspace(problem)
            device = by_micro_batch(workspace)
            yield row("data-parallel", 1e3 * best_order(workspace, device), device)


def by_micro_batch(workspace: MakespanWorkspace) -> np.ndarray:
    """Return [N] devices: data parallelism."""
    graph = workspace.problem.graph
    part = np.array([micro_batch_of(name) for name in graph.names])
    wanted = np.where(part == WHOLE, NOWHERE, part % workspace.num_devices)
    placed = infer_devices(graph, graph.is_fed, wanted)
    return softly_placed(workspace.choices, placed[None])[0].astype(np.int64)


def best_order(workspace: MakespanWorkspace, device: np.ndarray) -> float:
    """Return the seconds of a placement in the best of its orders, fused or not."""
    return min(
        float(workspace.evaluate(composition(workspace, device, order, fused)).seconds[0])
        for order in (Order.PLACED, Order.TOPOLOGICAL)
        for fused in (True, False)
    )


def copied_share(graph: OpGraph, device: np.ndarray) -> float:
    """Return the share of the bytes of tied weights that several devices read."""
    where = {(a, d) for a, d in zip(graph.tied_array, device[graph.tied_node], strict=True)}
    readers = np.bincount([a for a, _ in where], minlength=len(graph.tied_bytes))
    return float(graph.tied_bytes[readers > 1].sum() / graph.tied_bytes.sum())


def page(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield from ("# Training iterations in micro-batches", "", ABOUT, "")
    found = {(r.network, r.parts, r.method): r for r in rows}
    lines = []
    for network, parts in product(NETWORKS, PARTS):
        cells = [found.get((network, parts, method)) for method in METHODS]
        nodes = next((str(row.nodes) for row in cells if row), "")
        lines.append((network, str(parts), nodes, *map(_cell, cells)))
    yield from table_lines(("network", "N", "nodes", *METHODS), lines)


def _cell(row: Row | None) -> str:
    return f"{row.milliseconds:.1f} ({100 * row.copied:.0f} %)" if row else "–"
