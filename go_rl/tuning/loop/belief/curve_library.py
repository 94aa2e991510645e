"""`CurveLibrary`: recorded curves of other operators, and its file.

A file (`go_rl.runtime.saved_model`) says networks and provenance, and holds ``values`` (float32:
best FLOP/s over the peak after each trial, all curves in a row), ``lengths`` and ``network``
(number of the network of each curve).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from go_rl.core.errors import nearest
from go_rl.runtime.saved_model import SavedKind
from go_rl.tuning.config import TuningError

SHIPPED = Path(__file__).with_name("curves.npz")
KIND = SavedKind("go_rl-tuning-curves", "tuning curves", {"version": 1}, error=TuningError)


@dataclass(frozen=True, eq=False)
class CurveLibrary:
    """Curves of many operators.

    Raises:
        TuningError: there is no curve, or one is empty, falls or leaves (0, 1].
    """

    curves: tuple[Float32[np.ndarray, "_"], ...]
    """Best FLOP/s over the peak after each trial, from the first one that worked on."""
    networks: tuple[str, ...]
    """Network of each curve."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Origin of the curves: JSON."""

    def __post_init__(self) -> None:
        if not self.curves or len(self.curves) != len(self.networks):
            raise TuningError("a library of curves needs curves, each with its network")
        for curve in self.curves:
            if (
                not len(curve)
                or not curve[0] > 0
                or not curve[-1] <= 1
                or (np.diff(curve) < 0).any()
            ):
                raise TuningError("a curve must be non-decreasing within (0, 1]")

    def without(self, network: str) -> CurveLibrary:
        """Return the library without one network, which is to be predicted.

        Raises:
            TuningError: the network is unknown, or the only one.
        """
        known = sorted(set(self.networks))
        if network not in known:
            raise TuningError(f"no curves of network {network!r}{nearest(network, known)}")
        kept = [i for i, each in enumerate(self.networks) if each != network]
        return replace(
            self,
            curves=tuple(self.curves[i] for i in kept),
            networks=tuple(self.networks[i] for i in kept),
        )

    def save(self, path: str | Path) -> None:
        """Write the file; raises CheckpointError where that is not possible."""
        known = sorted(set(self.networks))
        arrays = {
            "values": np.concatenate(self.curves).astype(np.float32),
            "lengths": np.array([len(curve) for curve in self.curves], np.int32),
            "network": np.array([known.index(name) for name in self.networks], np.int32),
        }
        KIND.write(path, arrays, {"networks": known, "provenance": dict(self.provenance)})


def load_curves() -> CurveLibrary:
    """Read the library that ships.

    Raises:
        TuningError: it is not there, damaged, or of another version.
    """
    with KIND.opened(SHIPPED) as saved:
        networks, arrays = saved.manifest["networks"], saved.arrays
        names = tuple(networks[number] for number in arrays["network"].tolist())
        curves = tuple(np.split(arrays["values"], np.cumsum(arrays["lengths"])[:-1]))
        return CurveLibrary(curves, names, saved.manifest["provenance"])
