"""`ZooModel`: one network of the zoo, as a recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from go_rl.zoo.models.building import Built


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
