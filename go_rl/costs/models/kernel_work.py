"""FLOP, traffic and kind of kernels that are kept as graphs."""

from __future__ import annotations

import numpy as np

from go_rl.core import OpKind
from go_rl.costs.models.cost_model import Kernels
from go_rl.graphs.cutting.kernel_set import KernelSet


def kernel_work(kernels: KernelSet) -> Kernels:
    """Return FLOP, traffic and kind of each kernel, as `go_rl.costs.models.fused.FusedPrices` has
    them.

    A kernel reads its operands and weights once (of a table the rows that it looks up) and writes
    its results; its kind is that of the operator with most FLOP.
    """
    graph, kernel, count = kernels.graph, kernels.kernel, kernels.num_kernels
    operand = graph.kind == OpKind.INPUT
    moved = graph.output_bytes * (operand | graph.is_output) + graph.weight_bytes_read
    order = np.argsort(np.where(operand, -1.0, graph.flops), kind="stable")
    kind = np.full(count, int(OpKind.OTHER), np.int8)
    kind[kernel[order]] = graph.kind[order]
    return Kernels(
        graph=graph,
        kind=kind,
        flops=np.bincount(kernel, graph.flops, count),
        bytes_accessed=np.bincount(kernel, moved, count),
        streamed_bytes=np.zeros(count),
    )
