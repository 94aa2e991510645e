"""`Learned`: the cost model that predicts kernels from their graphs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device
from go_rl.costs.kernels.predictor import KernelPredictor, predict_kernels
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import KernelCache, check_shapes, check_target, with_streaming
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.cutting.opcode_names import opcode


@dataclass(frozen=True, eq=False)
class Learned:
    """`CostModel`: an ensemble of kernel networks, valid on the target that it was measured on."""

    weights: KernelPredictor
    name: str = "learned"
    _cache: KernelCache = field(default_factory=KernelCache, repr=False)
    _unfamiliar: set[str] = field(default_factory=set, repr=False)
    """Hashes of kernels unlike the training data."""

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] predicted seconds.

        Raises:
            HardwareError: the device is of another kind than the kernels that were measured.
            ProblemError: the graph's operators have no shapes.
        """
        check_target(self.name, self.weights.target, device)
        check_shapes(self.name, kernels.graph)
        return with_streaming(self._cache.seconds(kernels, self._predict), kernels, device)

    def notes(self, kernels: Kernels, device: Device) -> tuple[str, ...]:
        """Return notes: the cost model, and how many of these kernels are unlike the training
        data."""
        on = f" ({self.weights.processor})" if self.weights.processor else ""
        said = f"Operator times are predicted by {self.name}, which learned on {device.kind}{on}."
        priced = [hash_ for hash_ in self._cache.hashes(kernels) if hash_ is not None]
        strange = sum(hash_ in self._unfamiliar for hash_ in priced)
        if not strange:
            return (said,)
        unseen = self._unseen(kernels)
        why = f" (operators never seen: {', '.join(unseen)})" if unseen else ""
        return said, (
            f"{strange:,} of {len(priced):,} operators are unlike all that {self.name} learned "
            f"from{why}; their times are guesses."
        )

    def _predict(self, new: KernelSet) -> Float64[np.ndarray, "K"]:
        found = predict_kernels(self.weights, new)
        self._unfamiliar.update(h for h, f in zip(new.hashes, found.unfamiliar, strict=True) if f)
        return found.seconds

    def _unseen(self, kernels: Kernels) -> list[str]:
        graph = kernels.graph
        named = {opcode(graph.op_type[i]) for i in np.flatnonzero(~graph.is_fed).tolist()}
        return sorted(named - set(self.weights.vocabulary))
