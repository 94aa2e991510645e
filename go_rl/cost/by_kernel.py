"""What cost models that know kernels as graphs share: cutting, and remembering what was priced."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float64

from go_rl.core import NO_DIM, Chip, OpGraph, Package, PackageError, ProblemError
from go_rl.core.op_kind import FREE_KINDS
from go_rl.cost.cost_model import Kernels
from go_rl.kernels import KernelSet, cut_kernels

KernelSeconds = Callable[[KernelSet], Float64[np.ndarray, "K"]]


class KernelCache:
    """Seconds by the canonical hash of kernels, so that equal ones are priced once."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._hashes: WeakKeyDictionary[Kernels, tuple[str | None, ...]] = WeakKeyDictionary()

    def seconds(self, kernels: Kernels, price: KernelSeconds) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds; ``price`` is asked for the distinct kernels that are new."""
        graph = kernels.graph
        leader = np.arange(graph.num_nodes) if kernels.leader is None else kernels.leader
        which = np.arange(graph.num_nodes) if kernels.which is None else kernels.which
        cut, leaders = cut_kernels(graph, leader)
        hashes = cut.hashes
        place = dict(zip(leaders.tolist(), hashes, strict=True))
        wanted = [place.get(node) for node in which.tolist()]  # None: fed, and costs nothing
        asked = set(wanted)
        first = {h: k for k, h in enumerate(hashes) if h in asked and h not in self._known}
        if first:
            new = cut.take(np.array(sorted(first.values()), np.int64))
            self._known |= dict(zip(new.hashes, price(new).tolist(), strict=True))
        free = np.isin(kernels.kind, [int(kind) for kind in FREE_KINDS])
        wanted = [None if f else h for f, h in zip(free.tolist(), wanted, strict=True)]
        self._hashes[kernels] = tuple(wanted)
        return np.array([0.0 if h is None else self._known[h] for h in wanted])

    def hashes(self, kernels: Kernels) -> tuple[str | None, ...]:
        """Return [K] hashes of kernels that were priced; None: costs nothing."""
        return self._hashes[kernels]


def check_target(model: str, target: str, chip: Chip) -> None:
    """Raise a `PackageError` for a chip on which a model's kernels were not measured."""
    if chip.kind != target:
        raise PackageError(
            f"the {model} cost model knows chips of kind {target!r}, where its kernels were "
            f"measured, not {chip.kind!r}; take the package {target}, or --cost analytical"
        )


def check_format(model: str, target: str, package: Package) -> None:
    """Raise a `PackageError` for a package of such chips with a number format of its own."""
    if target in package.kinds and package.element_bytes is not None:
        raise PackageError(
            f"cost model {model} knows kernels in the model's own number format; package "
            f"{package.name!r} has elements of {package.element_bytes:g} bytes: leave out its "
            "element_bytes, or take --cost analytical"
        )


def check_shapes(model: str, graph: OpGraph) -> None:
    """Raise a `ProblemError` for a graph whose operators are known by their seconds only."""
    if graph.seconds and not graph.has_flops:
        raise ProblemError(
            f"cost model {model} predicts operators from their shapes and FLOP, and graph "
            f"{graph.name!r} brings only a profile of their seconds: take --cost profiled"
        )
    sized = (graph.output_bytes > np.maximum(graph.output_itemsize, 8.0)).any()
    if sized and (graph.output_shape == NO_DIM).all():
        raise ProblemError(
            f"cost model {model} predicts operators from their shapes, and the operators of graph "
            f"{graph.name!r} have none: take --cost analytical"
        )
