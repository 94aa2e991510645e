"""`StagePrices`: prices of a core, corrected so that stages that were run come out as measured.

Before that they are what the weights of ``cpu-1`` predict, though the stages ran on another
processor or by another runtime: operators' shares differ less than by a roofline, which prices
graphs without shapes. The seconds of node ``n`` of type ``t`` are ``exp(a + b[t] + c[n])`` times
these. The numbers are the most probable ones, given the measured sums of seconds (their logarithms
are off by `MEASURED` or so) and that ``b`` and ``c`` are normal around 0 (`TYPE`, `NODE`): what was
cut apart is learned apart, what always ran together keeps its proportions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from scipy.optimize import minimize

from go_rl.core import Device, OpGraph, ProblemError
from go_rl.core.printable import counted
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.cost_model import CostModel, Kernels
from go_rl.costs.models.kernel_cache import check_shapes
from go_rl.costs.models.stage_times import StageTimes, of_graph, read_times

MEASURED, TYPE, NODE = 0.03, 0.6, 0.6
"""Standard deviations, of logarithms."""
CORE = "cpu-1"
"""Kind of device that the learned prices are of."""
LEAST = 1e-12
"""Seconds below which a node counts as none."""


@dataclass(frozen=True, eq=False)
class StagePrices:
    """`CostModel`: for the graph of the runs, and the kind of device of their plans."""

    path: Path
    """File of the runs."""
    name: str
    learned: CostModel
    """Prices of `CORE` before the correction."""
    _corrected: dict[str, tuple[OpGraph, Float64[np.ndarray, "N"]]] = field(
        default_factory=dict, repr=False
    )
    """Factor of each node, by kind of device, of the graph that was priced last."""

    @cached_property
    def runs(self) -> list[StageTimes]:
        """All runs of the file."""
        return read_times(self.path)

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds; a fused kernel is corrected as the nodes that it has.

        Raises:
            ProblemError: no stage of this graph has run on such a device.
            RecordError: the file cannot be read.
        """
        model, core = self._base(kernels.graph, device)
        plain = model.seconds(kernels, core)
        if kernels.leader is None:
            runs = self._runs(kernels.graph, device.kind)
            factor = stage_factors(plain, kernels.graph.op_type, runs)
            self._corrected[device.kind] = kernels.graph, factor
            return plain * factor
        graph, factor = self._corrected[device.kind]
        if graph is not kernels.graph or kernels.which is None:
            raise ProblemError(f"{self.name}: kernels of a graph whose nodes were not priced")
        weight = np.maximum(graph.flops + graph.bytes_accessed, 1.0)
        counts = len(graph.flops)
        total = np.bincount(kernels.leader, weight, counts)
        mean = np.bincount(kernels.leader, weight * factor, counts) / np.maximum(total, 1.0)
        return plain * mean[kernels.which]

    def notes(self, kernels: Kernels, device: Device) -> tuple[str, ...]:
        """Return what the prices come from."""
        runs = self._runs(kernels.graph, device.kind)
        stages = sum(len(run.seconds) for run in runs)
        processors = ", ".join(sorted({run.processor for run in runs}))
        base = self._base(kernels.graph, device)[0].name
        return (
            f"Operator times on {device.kind} are those of {base}, corrected by "
            f"{counted(stages, 'stage')} of {counted(len(runs), 'run')} on {processors} "
            f"({self.path.name}).",
        )

    def _base(self, graph: OpGraph, device: Device) -> tuple[CostModel, Device]:
        """The cost model before the correction, and the device that it knows."""
        try:
            check_shapes(self.learned.name, graph)
        except ProblemError:
            return Analytical(), device
        return self.learned, replace(device, kind=CORE)

    def _runs(self, graph: OpGraph, target: str) -> list[StageTimes]:
        found = of_graph(self.runs, graph.digest, target)
        if not found:
            raise ProblemError(
                f"{self.path}: no stages of {graph.name!r} have run on devices of kind {target!r}; "
                "plan with --cost analytical, then go-rl export, and go-rl run --record"
            )
        return found


def stage_factors(
    priced: Float64[np.ndarray, "N"], op_type: Sequence[str], runs: Sequence[StageTimes]
) -> Float64[np.ndarray, "N"]:
    """Return [N] the factor of each node's seconds.

    Args:
        priced: [N] seconds before.
        op_type: [N] type of each node.
        runs: of the graph.
    """
    parts = [(list(n), s) for run in runs for n, s in zip(run.nodes, run.seconds, strict=True)]
    parts = [(nodes, seconds) for nodes, seconds in parts if priced[nodes].sum() > LEAST]
    if not parts:
        return np.ones(len(priced))
    member = np.zeros((len(parts), len(priced)))
    for row, (nodes, _) in enumerate(parts):
        member[row, nodes] = priced[nodes]
    target = np.log([seconds for _, seconds in parts])
    types, which = np.unique(np.array(op_type, object).astype(str), return_inverse=True)
    level = float(np.median(target - np.log(member.sum(axis=1))))
    start = np.zeros(1 + len(types) + len(priced))
    start[0] = level

    def factors(numbers: np.ndarray) -> np.ndarray:
        kinds, nodes = np.split(numbers[1:], [len(types)])
        return np.exp(numbers[0] + kinds[which] + nodes)

    def loss(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        kinds, nodes = np.split(numbers[1:], [len(types)])
        each = member * factors(numbers)
        total = each.sum(axis=1)
        off = (np.log(total) - target) / MEASURED
        pull = (off / MEASURED / total) @ each
        slope = np.concatenate((
            [pull.sum()],
            np.bincount(which, pull, len(types)) + kinds / TYPE**2,
            pull + nodes / NODE**2,
        ))  # fmt: skip
        prior = (kinds**2).sum() / TYPE**2 + (nodes**2).sum() / NODE**2
        return float((off**2).sum() + prior) / 2, slope

    return factors(minimize(loss, start, jac=True, method="L-BFGS-B").x)
