"""Every network of the zoo, as the recipes that `go_rl.graphs.zoo.freeze` traces.

Importing this file imports JAX and flax; the frozen graphs (`go_rl.graphs.zoo.zoo_graph`) need
neither.
"""

from __future__ import annotations

from go_rl.core import ZooError
from go_rl.core.errors import nearest
from go_rl.graphs.zoo.index import TRAINED
from go_rl.graphs.zoo.models.audio import networks
from go_rl.graphs.zoo.models.building import ZooModel, training_form
from go_rl.graphs.zoo.models.language import language
from go_rl.graphs.zoo.models.tabular import recommendation
from go_rl.graphs.zoo.models.vision import entries, keras_applications

_FILES = (keras_applications, entries, language, networks, recommendation)
_RECIPES = tuple(model for file in _FILES for model in file.ENTRIES)
_BY_NAME = {model.name: model for model in _RECIPES}
ZOO_MODELS: tuple[ZooModel, ...] = (*_RECIPES, *(training_form(_BY_NAME[name]) for name in TRAINED))
"""All recipes; names are unique."""


def zoo_model(name: str) -> ZooModel:
    """Return the recipe of this name.

    Raises:
        ZooError: there is none; the nearest is named.
    """
    by_name = {model.name: model for model in ZOO_MODELS}
    if name not in by_name:
        raise ZooError(
            f"no model of the zoo is called {name!r}{nearest(name.removeprefix('zoo:'), by_name)} "
            "List them with go-rl zoo list"
        )
    return by_name[name]
