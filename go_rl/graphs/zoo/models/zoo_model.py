"""`ZooModel`: one network of the zoo, as a recipe; the recipes of flax modules and of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import flax.linen as nn

from go_rl.graphs.zoo.models.building import Built, flax_model, training


@dataclass(frozen=True)
class ZooModel:
    """One network of the zoo."""

    name: str
    """Unique, lower case, words joined by hyphens: ``resnet50``, ``bert-base-b8``."""
    family: str
    """Architecture family; the split never divides a test family: ``resnet``, ``bert``."""
    build: Callable[[], Built]
    """Returns the function, its abstract arguments and the positions of the weights."""
    training: bool = False
    """One training step instead of inference."""


def flax_entry(name: str, family: str, module: nn.Module, *inputs: Any) -> ZooModel:
    """Return the recipe of a flax module's forward pass on abstract ``inputs``."""
    return ZooModel(name, family, partial(flax_model, module, *inputs))


def training_form(model: ZooModel, axes: Mapping[int, int] | None = None) -> ZooModel:
    """Return the training iteration of a network, named ``NAME-training``; ``axes`` are those of
    `TrainingIteration`."""
    build = model.build
    return ZooModel(f"{model.name}-training", model.family, lambda: training(build(), axes), True)
