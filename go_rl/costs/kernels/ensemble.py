"""`TrainedNetwork`: a network of kernels and its weights; `Ensemble`: networks that learned seconds
or ranks, and their weight files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.core import OpKind
from go_rl.costs.kernels.batch import LENGTHS, KernelBatch, batch_of, over_batches
from go_rl.costs.kernels.features import KERNEL_FEATURES, KernelFeatures, kernel_features
from go_rl.costs.kernels.network import KernelNetwork
from go_rl.costs.kernels.ranks.network import RankNetwork
from go_rl.costs.learning.predictor import Examples, Inputs, Predictor
from go_rl.costs.learning.training import Params
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.runtime.saved_model import SavedKind

NETWORKS, RANGE = "members", "range"
Made = TypeVar("Made", bound="Ensemble[Any, Any]")


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network of kernels and its weights."""

    network: KernelNetwork | RankNetwork
    params: Params

    def predict(self, features: KernelFeatures) -> Float64[np.ndarray, "K C"]:
        """Return [K, C] the network's columns for all kernels."""
        compute = partial(_apply, self.network, self.params)
        return over_batches(features, self.network.columns, compute).astype(np.float64)


@partial(jax.jit, static_argnums=0)
def _apply(network: KernelNetwork | RankNetwork, params: Params, batch: KernelBatch) -> Any:
    return network.apply(params, batch)


@dataclass(frozen=True, eq=False)
class Ensemble(Predictor[Examples, Inputs]):
    """Abstract: networks that learned from the same data, and what they know."""

    networks: tuple[TrainedNetwork, ...]
    """Networks of one configuration."""
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
    beside: ClassVar[tuple[str, ...]] = ()
    """Fields that a file holds beside the networks, each a number of every `KERNEL_FEATURES`."""

    def __post_init__(self) -> None:
        self.check_fitted(bool(self.networks))

    @classmethod
    @abstractmethod
    def columns(cls) -> list[list[str]]:
        """Return the names of all features that the networks read."""

    @classmethod
    @abstractmethod
    def network_of(cls, config: Mapping[str, Any]) -> KernelNetwork | RankNetwork:
        """Return a network by the fields of its configuration."""

    def save(self, path: Path) -> None:
        """Write the networks to a file that `load` reads."""
        manifest = {
            "name": self.name,
            "target": self.target,
            "members": len(self.networks),
            "network": asdict(self.networks[0].network.config),
            "vocabulary": list(self.vocabulary),
            "card": dict(self.card),
        }
        members = {str(i): each.params for i, each in enumerate(self.networks)}
        beside = {name: getattr(self, name) for name in self.beside}
        self._kind().write(path, _tree(members, beside), manifest)

    @classmethod
    def load(cls: type[Made], source: str | Path) -> Made:
        with cls._kind().opened(source) as saved:
            manifest = saved.manifest
            network = cls.network_of(manifest["network"])
            one = jax.eval_shape(network.init, jax.random.key(0), batch_shapes())
            members = {str(i): one for i in range(_members(manifest, saved.arrays))}
            columns = jax.ShapeDtypeStruct((len(KERNEL_FEATURES),), jnp.float32)
            beside = dict.fromkeys(cls.beside, columns)
            tree = saved.tree(_tree(members, beside))
            params, beside = (tree[NETWORKS], tree[RANGE]) if beside else (tree, {})
            about = {key: manifest[key] for key in ("target", "name", "card")}
            return cls(
                networks=tuple(TrainedNetwork(network, params[number]) for number in members),
                vocabulary=tuple(manifest["vocabulary"]), **about, **beside,
            )  # fmt: skip

    @classmethod
    def _kind(cls) -> SavedKind:
        versions = {"interface": cls.interface, "features": cls.columns()}
        return SavedKind(cls.format, cls.what, versions, shipped=cls.shipped)


def _tree(members: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a file: those of the networks, and what is beside them."""
    return {NETWORKS: members, RANGE: beside} if beside else dict(members)


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
