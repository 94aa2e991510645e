"""Weights files of ensembles of networks that learned seconds or ranks."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from go_rl.core import CheckpointError, OpKind, TrainingError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.kernels import cut_kernels
from go_rl.predictors.kernels.batch import LENGTHS, batch_of
from go_rl.predictors.kernels.features import kernel_features
from go_rl.readers.graph_builder import GraphBuilder, Node
from go_rl.runtime.parameter_file import (
    check_digest,
    check_parameters,
    parameter_tree,
    read_parameters,
    write_parameters,
)

Config = TypeVar("Config")
Network = TypeVar("Network")
Columns = list[list[str]]


@dataclass(frozen=True, eq=False)
class Ensemble(ABC, Generic[Network]):
    """Abstract: networks that learned from the same data, and what they know."""

    networks: tuple[Network, ...]
    """Of one configuration; each has a ``config`` and ``params``."""
    vocabulary: tuple[str, ...]
    """Opcodes that they have seen."""
    target: str
    """Kind of chip on which their kernels were measured."""
    name: str
    card: Mapping[str, Any]
    """Model card: data sets, processor, training configuration, errors."""

    def members(self) -> dict[str, Any]:
        """Return the parameters of each network by its number."""
        networks: tuple[Any, ...] = self.networks
        return {str(i): network.params for i, network in enumerate(networks)}


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

    def write(self, path: Path, weights: Ensemble[Any], columns: Columns, params: Any) -> None:
        """Write the weights of an ensemble; a reader never sees a half-written file.

        Args:
            path: of the file.
            weights: of the ensemble.
            columns: names of all features that the networks read.
            params: tree of all arrays that the file holds.

        Raises:
            CheckpointError: the file cannot be written.
        """
        manifest = {
            **self._key(columns),
            "name": weights.name,
            "target": weights.target,
            "members": len(weights.networks),
            "network": asdict(weights.networks[0].config),
            "vocabulary": list(weights.vocabulary),
            "card": dict(weights.card),
        }
        write_parameters(path, params, manifest)

    def read(
        self,
        source: str | Path,
        columns: Columns,
        expected: Callable[[Mapping[str, Any], int], tuple[Config, Any]],
    ) -> StoredEnsemble[Config]:
        """Read the weights of an ensemble by the name of a shipped file, or by path.

        Args:
            source: name or path.
            columns: names of all features that the networks read.
            expected: from the fields of a network's configuration and the number of members, the
                configuration and the shapes of all arrays.

        Raises:
            CheckpointError: no such weights, damaged, of another kind, interface or other features.
        """
        path = shipped_or_given(source, self.shipped, ".npz", self.what, CheckpointError)
        manifest, arrays = read_parameters(path)
        if manifest.get("format") != self.format:
            raise CheckpointError(f"{path}: is no file of {self.what}")
        if {**manifest, **self._key(columns)} != manifest:
            raise CheckpointError(
                f"{path}: learned from other features than this version's; retrain"
            )
        check_digest(path, manifest, arrays)
        with _fitting_manifest(path):
            members = _members(manifest, arrays)
            config, shapes = expected(manifest["network"], members)
            about = {key: manifest[key] for key in ("target", "name", "card")}
            about["vocabulary"] = tuple(manifest["vocabulary"])
        check_parameters(path, arrays, shapes)
        return StoredEnsemble(config, members, parameter_tree(arrays), about)

    def _key(self, columns: Columns) -> dict[str, Any]:
        """What the manifests of all files that can be read say."""
        return {"format": self.format, "interface": self.interface, "features": columns}


@dataclass(frozen=True)
class StoredEnsemble(Generic[Config]):
    """What a file holds."""

    config: Config
    members: int
    tree: Any
    """All arrays."""
    about: Mapping[str, Any]
    """Vocabulary, target, name and model card."""


def _members(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> int:
    """The number of networks in a file; a `ValueError` when it cannot be so many."""
    members = manifest["members"]
    if type(members) is not int or not 1 <= members <= len(arrays):
        raise ValueError(f"members must be a whole number of 1 to {len(arrays)}, not {members!r}")
    return members


@contextmanager
def _fitting_manifest(path: Path) -> Iterator[None]:
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
