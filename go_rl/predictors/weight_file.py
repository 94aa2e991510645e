"""What weight files of all learned cost models have in common: how they are found and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from go_rl.core import CheckpointError, OpKind, TrainingError
from go_rl.core.errors import nearest
from go_rl.kernels import cut_kernels
from go_rl.predictors.kernels.batch import LENGTHS, batch_of
from go_rl.predictors.kernels.features import kernel_features
from go_rl.readers.graph_builder import GraphBuilder, Node
from go_rl.runtime.parameter_file import check_digest, read_parameters

Columns = list[list[str]]


@dataclass(frozen=True)
class WeightKind:
    """A kind of weight file."""

    what: str
    """In words, for messages: ``kernel cost weights``."""
    format: str
    interface: int
    """Version of what the manifest means."""
    shipped: Path
    """The folder of those that ship with the package."""

    def path(self, source: str | Path) -> Path:
        """Return the file that a name of a shipped one, or a path, means; a `CheckpointError` says
        that there is no such name."""
        path = Path(source)
        if path.suffix == ".npz" or path.exists():
            return path
        known = sorted(each.stem for each in self.shipped.glob("*.npz"))
        if str(source) not in known:
            raise CheckpointError(f"no {self.what} {str(source)!r}{nearest(str(source), known)}")
        return self.shipped / f"{source}.npz"

    def manifest(self, columns: Columns) -> dict[str, Any]:
        """Return what every manifest of this kind says.

        Args:
            columns: names of all features that the networks read.
        """
        return {"format": self.format, "interface": self.interface, "features": columns}

    def read(self, path: Path, columns: Columns) -> tuple[dict[str, Any], Mapping[str, np.ndarray]]:
        """Return the manifest and the arrays of a file that learned from these features.

        Raises:
            CheckpointError: damaged, of another kind, interface or other features.
        """
        manifest, arrays = read_parameters(path)
        if manifest.get("format") != self.format:
            raise CheckpointError(f"{path}: is no file of {self.what}")
        if {**manifest, **self.manifest(columns)} != manifest:
            raise CheckpointError(
                f"{path}: learned from other features than this version's; retrain"
            )
        check_digest(path, manifest, arrays)
        return manifest, arrays


def members_of(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> int:
    """Return the number of networks in a file; a `ValueError` when it cannot be so many."""
    members = manifest["members"]
    if type(members) is not int or not 1 <= members <= len(arrays):
        raise ValueError(f"members must be a whole number of 1 to {len(arrays)}, not {members!r}")
    return members


@contextmanager
def fitting_manifest(path: Path) -> Iterator[None]:
    """Turn what a malformed manifest raises into a `CheckpointError`."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        TrainingError,
    ) as error:
        raise CheckpointError(
            f"{path}: its manifest does not fit this version ({error})"
        ) from error


def batch_shapes() -> Any:
    """Return the shapes of a `KernelBatch` of one kernel; those of parameters follow from it."""
    builder = GraphBuilder("one node")
    builder.add_node(Node("add", "add", OpKind.ELEMENTWISE, output_bytes=4.0, output_itemsize=4.0))
    kernels = cut_kernels(builder.build(), np.zeros(1, np.int64))[0]
    batch = batch_of(kernel_features(kernels, ()), np.zeros(1, np.int64), 1, LENGTHS[0])
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), batch)
