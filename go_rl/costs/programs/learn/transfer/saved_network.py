"""`SavedNetwork`: a predictor that is one network, with what standardises its inputs, and its file.

The file holds arrays and a manifest, no pickle.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import flax.linen as nn
import jax
import numpy as np
from jaxtyping import Array, Float32, Int64

from go_rl.core import TrainingError
from go_rl.core.files.typed_json import from_json
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.learning.training import Params, TrainRun
from go_rl.costs.programs.features import FEATURE_VERSION
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, ProgramExamples, ProgramInputs
from go_rl.runtime.saved_model import SavedKind

NETWORK, SCALE = "network", "scale"
SIZES = (8, 32, 128, 512)
"""Programs of a batch; others are filled up or cut, so that few shapes are compiled."""
Made = TypeVar("Made", bound="SavedNetwork")


@runtime_checkable
class BatchedPrograms(Protocol):
    """Programs as a network reads them."""

    @property
    def groups(self) -> Sequence[Int64[np.ndarray, "J"]]:
        """Programs that may share a batch; each program is in one group."""
        ...

    def batch(self, group: int, which: Int64[np.ndarray, "B"]) -> Any:
        """Return what the network reads of programs of a group."""
        ...


@dataclass(frozen=True, eq=False)
class SavedNetwork(Predictor[ProgramExamples, ProgramInputs]):
    """Abstract: a network that learned from programs."""

    sizes: Any
    """Configuration of the network, a frozen dataclass of numbers and tuples of numbers."""
    params: Params
    """None: nothing was learned."""
    scale: Mapping[str, np.ndarray]
    """Means and deviations of inputs."""
    run: TrainRun
    """Run by which the network was trained."""
    labels: Mapping[str, Any]
    """Transform of outputs into predictions, as JSON."""
    drawn: int = field(default=0, compare=False)
    """Programs that updates read; not in the file."""

    format: ClassVar[str]
    sizes_type: ClassVar[type[Any]]
    run_type: ClassVar[type[TrainRun]]

    def __post_init__(self) -> None:
        self.check_fitted(self.params is not None)

    @classmethod
    @abstractmethod
    def module(cls, sizes: Any) -> nn.Module:
        """Return the network, hashable."""

    @classmethod
    @abstractmethod
    def scale_of(cls, inputs: ProgramInputs) -> dict[str, np.ndarray]:
        """Return what standardises inputs like these."""

    @classmethod
    @abstractmethod
    def empty_batch(cls, sizes: Any) -> Any:
        """Return a batch of one program; parameters' shapes follow from it."""

    @classmethod
    def initial(cls, sizes: Any, key: Array) -> Params:
        """Return random parameters."""
        return cls.module(sizes).init(key, cls.empty_batch(sizes))

    def save(self, path: Path) -> None:
        """Write the network to a file that `load` reads."""
        manifest = {
            "sizes": asdict(self.sizes),
            "run": asdict(self.run),
            "labels": dict(self.labels),
            "scale": {name: len(rows) for name, rows in self.scale.items()},
        }
        self._kind().write(path, {NETWORK: self.params, SCALE: dict(self.scale)}, manifest)

    @classmethod
    def load(cls: type[Made], source: str | Path) -> Made:
        """Read what `save` wrote, by path only: none ship with the package."""
        with cls._kind().opened(source) as saved:
            manifest = saved.manifest
            sizes = from_json(
                cls.sizes_type, manifest["sizes"], "sizes", TrainingError, complete=True
            )
            run = from_json(cls.run_type, manifest["run"], "run", TrainingError, complete=True)
            shapes = {
                NETWORK: jax.eval_shape(lambda: cls.initial(sizes, jax.random.key(0))),
                SCALE: {name: np.empty(rows) for name, rows in manifest["scale"].items()},
            }
            tree = saved.tree(shapes)
            return cls(sizes, tree[NETWORK], tree[SCALE], run, manifest["labels"])

    @classmethod
    def _kind(cls) -> SavedKind:
        versions = {"features": FEATURE_VERSION, "target_features": list(TARGET_FEATURES)}
        return SavedKind(cls.format, cls.what, versions, "retrain")


def outputs(
    network: nn.Module, params: Params, programs: BatchedPrograms, count: int, width: int = 0
) -> Float32[np.ndarray, "P *width"]:
    """Return [P] outputs, or [P, width] where each is a vector; batches are filled up by repeating
    their last program."""
    found = np.zeros((count, width) if width else count, np.float32)
    for number, members in enumerate(programs.groups):
        for start in range(0, len(members), SIZES[-1]):
            which = members[start : start + SIZES[-1]]
            size = next(size for size in SIZES if size >= len(which))
            filled = np.concatenate([which, np.full(size - len(which), which[-1])])
            out = _apply(network, params, programs.batch(number, filled))
            found[which] = np.asarray(out)[: len(which)]
    return found


@partial(jax.jit, static_argnums=0)
def _apply(network: nn.Module, params: Params, batch: Any) -> Any:
    return network.apply(params, batch)
