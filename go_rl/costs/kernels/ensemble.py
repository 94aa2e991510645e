"""Ensembles of networks that learned seconds or ranks, and their weight files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import jax
import numpy as np

from go_rl.core import OpKind
from go_rl.costs.kernels.batch import LENGTHS, batch_of
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.learning.predictor import Examples, Inputs, Predictor
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.runtime.saved_model import SavedKind

NetworkT = TypeVar("NetworkT")
Made = TypeVar("Made", bound="Ensemble[Any, Any, Any]")


@dataclass(frozen=True, eq=False)
class Ensemble(Predictor[Examples, Inputs], Generic[NetworkT, Examples, Inputs]):
    """Abstract: networks that learned from the same data, and what they know."""

    networks: tuple[NetworkT, ...]
    """Networks of one configuration; each has a ``config`` and ``params``."""
    vocabulary: tuple[str, ...]
    """Opcodes that they have seen."""
    target: str
    """Kind of device on which their kernels were measured."""
    name: str
    card: Mapping[str, Any]
    """Model card: data sets, processor, training configuration, errors."""

    format: ClassVar[str]
    interface: ClassVar[int]
    """Version of what a file's manifest means."""
    shipped: ClassVar[Path]
    """Folder of the files that ship with the package."""

    def __post_init__(self) -> None:
        self.check_fitted(bool(self.networks))

    @classmethod
    @abstractmethod
    def columns(cls) -> list[list[str]]:
        """Return the names of all features that the networks read."""

    @classmethod
    @abstractmethod
    def shapes(cls, network: Mapping[str, Any], members: int) -> tuple[Any, Any]:
        """Return the configuration of a file's networks, and the shapes of all its arrays.

        Args:
            network: fields of the configuration.
            members: number of networks.
        """

    @abstractmethod
    def arrays(self) -> Any:
        """Return the tree of all arrays that a file holds."""

    @classmethod
    @abstractmethod
    def restored(
        cls: type[Made], config: Any, members: int, tree: Any, about: Mapping[str, Any]
    ) -> Made:
        """Return the ensemble of a file that was read.

        Args:
            config: of each network.
            members: number of networks.
            tree: as `arrays` returns it.
            about: vocabulary, target, name and card.
        """

    def members(self) -> dict[str, Any]:
        """Return the parameters of each network by its number."""
        networks: tuple[Any, ...] = self.networks
        return {str(i): network.params for i, network in enumerate(networks)}

    def save(self, path: Path) -> None:
        """Write the networks to a file that `load` reads."""
        networks: tuple[Any, ...] = self.networks
        manifest = {
            "name": self.name,
            "target": self.target,
            "members": len(networks),
            "network": asdict(networks[0].config),
            "vocabulary": list(self.vocabulary),
            "card": dict(self.card),
        }
        self._kind().write(path, self.arrays(), manifest)

    @classmethod
    def load(cls: type[Made], source: str | Path) -> Made:
        with cls._kind().opened(source) as saved:
            manifest = saved.manifest
            members = _members(manifest, saved.arrays)
            config, shapes = cls.shapes(manifest["network"], members)
            about = {key: manifest[key] for key in ("target", "name", "card")}
            about["vocabulary"] = tuple(manifest["vocabulary"])
            return cls.restored(config, members, saved.tree(shapes), about)

    @classmethod
    def _kind(cls) -> SavedKind:
        versions = {"interface": cls.interface, "features": cls.columns()}
        return SavedKind(cls.format, cls.what, versions, shipped=cls.shipped)


def _members(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> int:
    """Return the number of networks in a file, or raise a `ValueError` for an impossible one."""
    members = manifest["members"]
    if type(members) is not int or not 1 <= members <= len(arrays):
        raise ValueError(f"members must be a whole number of 1 to {len(arrays)}, not {members!r}")
    return members


def batch_shapes() -> Any:
    """Return the shapes of a `KernelBatch` of one kernel; those of parameters follow from it."""
    builder = GraphBuilder("one node")
    builder.add_node(Node("add", "add", OpKind.ELEMENTWISE, output_bytes=4.0, output_itemsize=4.0))
    kernels = cut_kernels(builder.build(), np.zeros(1, np.int64))[0]
    batch = batch_of(kernel_features(kernels, ()), np.zeros(1, np.int64), 1, LENGTHS[0])
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), batch)
