"""`PoolSet`: measured candidates of a network's operators, as one compact file.

A file (`go_rl.runtime.saved_model`) says operators, target and provenance, and holds, for all
candidates of all operators in a row, ``seconds`` (float32; NaN: it failed), ``spent`` (float32),
``features`` (float16, [S, numbers]) and ``keys`` (uint64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt64

from go_rl.runtime.records import canonical_json
from go_rl.runtime.saved_model import SavedKind
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import TunedOperator

FOLDER = Path(__file__).parent / "recorded"
"""Folder of the pools that ship."""
ENDING = ".npz"
KIND = SavedKind(
    "go_rl-candidate-pools", "candidate pools", {"version": 1},
    "make them again from their records", FOLDER, error=TuningError,
)  # fmt: skip
_ARRAYS = ("seconds", "spent", "features", "keys")


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """``S`` measured candidates of one operator."""

    operator: TunedOperator
    seconds: Float32[np.ndarray, "S"]
    """[S] seconds of one run; NaN: it failed."""
    spent: Float32[np.ndarray, "S"]
    """[S] seconds that building and timing took."""
    features: Float32[np.ndarray, "S numbers"]
    """[S, numbers] leaf vectors, summed over statements."""
    keys: UInt64[np.ndarray, "S"]
    """[S] distinct names of the candidates."""

    def __post_init__(self) -> None:
        count = len(self.seconds)
        if not count or len({count, len(self.spent), len(self.features), len(self.keys)}) > 1:
            raise TuningError(f"pool of {self.operator.name}: arrays are empty or differ in length")
        if len(np.unique(self.keys)) < count:
            raise TuningError(f"pool of {self.operator.name}: a candidate is there twice")
        if not np.nanmin(self.seconds, initial=np.inf) > 0 or not (self.spent > 0).all():
            raise TuningError(f"pool of {self.operator.name}: seconds must be above 0")


@dataclass(frozen=True, eq=False)
class PoolSet:
    """Pools of one network on one target."""

    network: str
    target: str
    peak_flops: float
    """Theoretical FLOP/s of the target."""
    pools: tuple[CandidatePool, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Origin of the measurements: JSON."""

    @property
    def candidates(self) -> int:
        """Candidates of all operators together."""
        return sum(len(pool.seconds) for pool in self.pools)

    @property
    def digest(self) -> str:
        """Hash of what was measured, 16 digits."""
        hashed = hashlib.sha256(canonical_json(self._described()).encode())
        for array in self._joined().values():
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()[:16]

    def save(self, path: str | Path) -> None:
        """Write the file; one that is there is replaced once the new one is complete.

        Raises:
            CheckpointError: it cannot be written.
        """
        KIND.write(path, self._joined(), self._described())

    def _described(self) -> dict[str, Any]:
        operators = [
            [
                p.operator.name,
                p.operator.workload,
                p.operator.repeats,
                p.operator.flops,
                len(p.keys),
            ]
            for p in self.pools
        ]
        return {
            "network": self.network, "target": self.target, "peak_flops": self.peak_flops,
            "operators": operators, "provenance": dict(self.provenance),
        }  # fmt: skip

    def _joined(self) -> dict[str, np.ndarray]:
        kinds = {"features": np.float16}
        return {
            name: np.concatenate([getattr(pool, name) for pool in self.pools]).astype(
                kinds.get(name, getattr(self.pools[0], name).dtype)
            )
            for name in _ARRAYS
        }


def load_pools(source: str | Path) -> PoolSet:
    """Read a file that `PoolSet.save` wrote, or pools that ship by the name of their network.

    Raises:
        TuningError: no such file or name; it is damaged, of another version, or no pool file.
    """
    with KIND.opened(source) as saved:
        header = saved.manifest
        return PoolSet(
            header["network"], header["target"], float(header["peak_flops"]),
            _split(header["operators"], saved.arrays), header["provenance"],
        )  # fmt: skip


def _split(
    operators: list[list[Any]], arrays: Mapping[str, np.ndarray]
) -> tuple[CandidatePool, ...]:
    if sum(row[4] for row in operators) != len(arrays["seconds"]):
        raise ValueError("operators and arrays count different candidates")
    found, start = [], 0
    for name, workload, repeats, flops, count in operators:
        part = {key: array[start : start + count] for key, array in arrays.items()}
        part["features"] = part["features"].astype(np.float32)
        found.append(CandidatePool(TunedOperator(name, workload, repeats, float(flops)), **part))
        start += count
    return tuple(found)
