"""The measured cost model: times of a plan's own kernels, from a store of records."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device, ProblemError
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import KernelCache, check_target, with_streaming
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.runtime.records import AS_IT_COMES, RecordStore


@dataclass(frozen=True, eq=False)
class Measured:
    """`CostModel`: records of `go-rl measure kernels`; a kernel without a time is an error."""

    records: str | Path
    """The store: a file, or a URL of SQLAlchemy."""
    target: str
    """Kind of device that the records are of."""
    name: str = "measured"
    _cache: KernelCache = field(default_factory=KernelCache, repr=False)

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] recorded seconds, of the first round.

        Raises:
            HardwareError: the device is of another kind.
            ProblemError: a kernel has not been measured, or could not be.
            RecordError: the records cannot be read.
        """
        check_target(self.name, self.target, device)
        return with_streaming(self._cache.seconds(kernels, self._look_up), kernels, device)

    def notes(self, kernels: Kernels, device: Device) -> tuple[str, ...]:
        """Return where the times come from."""
        return (f"Operator times were measured on {self.target} ({Path(self.records).name}).",)

    def _look_up(self, kernels: KernelSet) -> Float64[np.ndarray, "K"]:
        with RecordStore(self.records) as store:
            records = store.find(self.target, kernels.hashes, 0)
        known = {r.workload: r for r in records if r.setting == AS_IT_COMES}
        for k, hash_ in enumerate(kernels.hashes):
            record = known.get(hash_)
            if record is None or record.seconds is None:
                of = np.flatnonzero(kernels.kernel == k).tolist()
                names = [t for i in of if (t := kernels.graph.op_type[i]) != "input"]
                why = "was not measured" if record is None else f"has no time: {record.reason}"
                raise ProblemError(
                    f"a kernel of {', '.join(names[:6])}{' …' if len(names) > 6 else ''} {why} on "
                    f"{self.target} ({hash_}); measure it, or take --cost learned"
                )
        return np.array([known[hash_].seconds for hash_ in kernels.hashes], np.float64)
