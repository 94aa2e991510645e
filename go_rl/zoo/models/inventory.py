"""Every network of the zoo, as the recipes that `go_rl.zoo.freeze` traces.

Importing this file imports JAX and flax; the frozen graphs (`go_rl.zoo.zoo_graph`) need neither.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from go_rl.core import ZooError
from go_rl.core.errors import nearest
from go_rl.zoo.models.training_forms import training_forms
from go_rl.zoo.models.zoo_model import ZooModel

MODULES = (
    "vision.keras_applications",
    "vision.entries",
    "language.language",
    "audio.speech",
    "tabular.recommendation",
)
"""Files of this folder that export ``ENTRIES``."""


def _entries(module: str) -> tuple[ZooModel, ...]:
    name = f"go_rl.zoo.models.{module}"
    return import_module(name).ENTRIES if find_spec(name) is not None else ()


RECIPES: tuple[ZooModel, ...] = tuple(entry for m in MODULES for entry in _entries(m))
ZOO_MODELS: tuple[ZooModel, ...] = (*RECIPES, *training_forms(RECIPES))
"""All recipes; names are unique."""


def zoo_model(name: str) -> ZooModel:
    """Return the recipe of this name.

    Raises:
        ZooError: there is none; the nearest is named.
    """
    by_name = {model.name: model for model in ZOO_MODELS}
    if name not in by_name:
        raise ZooError(
            f"no model of the zoo is called {name!r}{nearest(name, by_name)} "
            "List them with go-rl zoo list"
        )
    return by_name[name]
