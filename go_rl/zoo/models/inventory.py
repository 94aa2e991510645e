"""Every network of the zoo, as the recipes that `go_rl.zoo.freeze` traces.

Importing this file imports JAX and flax; the frozen graphs (`go_rl.zoo.zoo_graph`) need neither.
"""

from __future__ import annotations

from go_rl.core import ZooError
from go_rl.core.errors import nearest
from go_rl.zoo.models.audio import speech
from go_rl.zoo.models.language import language
from go_rl.zoo.models.tabular import recommendation
from go_rl.zoo.models.vision import entries, keras_applications
from go_rl.zoo.models.zoo_model import ZooModel, training_form
from go_rl.zoo.split import TRAINED

_FILES = (keras_applications, entries, language, speech, recommendation)
_BY_NAME = {model.name: model for file in _FILES for model in file.ENTRIES}
_BY_NAME |= {form.name: form for form in (training_form(_BY_NAME[name]) for name in TRAINED)}
ZOO_MODELS = tuple(_BY_NAME.values())
"""All recipes; names are unique."""


def zoo_model(name: str) -> ZooModel:
    """Return the recipe of this name.

    Raises:
        ZooError: there is none; the nearest is named.
    """
    if name not in _BY_NAME:
        raise ZooError(
            f"no model of the zoo is called {name!r}{nearest(name, _BY_NAME)} "
            "List them with go-rl zoo list"
        )
    return _BY_NAME[name]
