"""What cost models that know kernels as graphs share: cutting, and remembering what was priced."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64

from go_rl.core import Chip, PackageError
from go_rl.core.op_kind import FREE_KINDS
from go_rl.cost.cost_model import Kernels
from go_rl.kernels import KernelSet, cut_kernels

KernelSeconds = Callable[[KernelSet], Float64[np.ndarray, "K"]]


class KernelCache:
    """Seconds by the canonical hash of kernels, so that equal ones are priced once."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

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
        found = np.array([0.0 if h is None else self._known[h] for h in wanted])
        return np.where(_free(kernels), 0.0, found)


def _free(kernels: Kernels) -> Bool[np.ndarray, "K"]:
    return np.isin(kernels.kind, [int(kind) for kind in FREE_KINDS])


def check_target(model: str, target: str, chip: Chip) -> None:
    """Raise a `PackageError` for a chip on which a model's kernels were not measured."""
    if chip.kind != target:
        raise PackageError(
            f"the {model} cost model knows chips of kind {target!r}, where its kernels were "
            f"measured, not {chip.kind!r}; take the package {target}, or --cost analytical"
        )
