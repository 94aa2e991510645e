"""`CurveLibrary`: recorded curves of other operators, and its file.

A file is an .npz with ``header`` (JSON: format, version, networks, provenance), ``values``
(float32: best FLOP/s over the peak after each trial, all curves in a row), ``lengths`` and
``network`` (number of the network of each curve).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from go_rl.core.errors import nearest
from go_rl.core.files.strict_json import parse_json
from go_rl.core.files.whole_file import whole_file
from go_rl.runtime.array_file import UNREADABLE, read_arrays
from go_rl.runtime.records import canonical_json
from go_rl.tuning.config import TuningError

FORMAT, VERSION = "go_rl tuning curves", 1
SHIPPED = Path(__file__).with_name("curves.npz")


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
        """Write the file; raises TuningError where that is not possible."""
        known = sorted(set(self.networks))
        header = {
            "format": FORMAT, "version": VERSION, "networks": known,
            "provenance": dict(self.provenance),
        }  # fmt: skip
        try:
            with whole_file(path) as file:
                np.savez_compressed(
                    file,
                    header=np.frombuffer(canonical_json(header).encode(), np.uint8),
                    values=np.concatenate(self.curves).astype(np.float32),
                    lengths=np.array([len(curve) for curve in self.curves], np.int32),
                    network=np.array([known.index(name) for name in self.networks], np.int32),
                )
        except OSError as error:
            raise TuningError(f"{path}: cannot be written ({error.strerror})") from error


def load_curves(path: str | Path = SHIPPED) -> CurveLibrary:
    """Read a library; by default the one that ships.

    Raises:
        TuningError: it is not there, damaged, or of another version.
    """
    try:
        file = read_arrays(Path(path))
        header = parse_json(file["header"].tobytes().decode())
        values, lengths, network = (file[name] for name in ("values", "lengths", "network"))
    except UNREADABLE as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise TuningError(f"{path}: cannot be read as curves ({what})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TuningError(f"{path}: does not say {FORMAT!r}; name a file of curves")
    if header.get("version") != VERSION:
        raise TuningError(
            f"{path}: curves of version {header.get('version')!r}, and this go_rl reads {VERSION}"
        )
    try:
        names = tuple(header["networks"][number] for number in network.tolist())
        curves = tuple(np.split(values, np.cumsum(lengths)[:-1]))
        return CurveLibrary(curves, names, header["provenance"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TuningError(f"{path}: is damaged ({error})") from error
