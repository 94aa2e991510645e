"""Freezing: the same graph each time, only what changed is written, recipes agree with the zoo."""

import sys
from types import SimpleNamespace

import pytest

from go_rl.core import GoRLError, MissingDependencyError
from go_rl.graphs.zoo import freeze, zoo_entry, zoo_names
from go_rl.graphs.zoo.models.inventory import ZOO_MODELS
from go_rl.graphs.zoo.models.vision import keras_applications

RECIPES = {model.name: model for model in ZOO_MODELS}


def test_every_recipe_is_frozen_and_every_frozen_graph_has_its_recipe():
    assert len(RECIPES) == len(ZOO_MODELS)
    assert set(RECIPES) == set(zoo_names(training=True))
    for name, model in RECIPES.items():
        entry = zoo_entry(name)
        assert (entry.family, entry.training) == (model.family, model.training)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "bert-tiny", "wavenet-1x10"])
def test_a_recipe_traces_to_the_frozen_graph(name):
    assert freeze.changed_models([RECIPES[name]]) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Keras and its imports
@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_traces_to_the_frozen_graph(name):
    try:
        assert freeze.changed_models([RECIPES[name]]) == []
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("keras", "message"),
    [
        (None, "pip install keras"),
        (SimpleNamespace(backend=SimpleNamespace(backend=lambda: "torch")), "KERAS_BACKEND=jax"),
    ],
)
def test_a_missing_or_wrongly_set_keras_is_named(monkeypatch, keras, message):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setitem(sys.modules, "keras", keras)
    with pytest.raises(GoRLError, match=message):
        keras_applications.ENTRIES[0].build()
