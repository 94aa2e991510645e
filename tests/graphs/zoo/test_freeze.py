"""Freezing: the same graph each time, only what changed is written, recipes agree with the zoo."""

import sys
from functools import partial
from types import SimpleNamespace

import flax.linen as nn
import pytest

from go_rl.core import GoRLError, MissingDependencyError
from go_rl.graphs.readers import load_graph
from go_rl.graphs.zoo import freeze, zoo_entry, zoo_names
from go_rl.graphs.zoo.index import INDEX, graph_path, read_index
from go_rl.graphs.zoo.models.building import ZooModel, flax_model, floats
from go_rl.graphs.zoo.models.inventory import ZOO_MODELS
from go_rl.graphs.zoo.models.vision import keras_applications

RECIPES = {model.name: model for model in ZOO_MODELS}


def _tiny(name: str, width: int) -> ZooModel:
    return ZooModel(name, "mlp", partial(flax_model, nn.Dense(width), floats(2, 3)))


def test_freezing_writes_graphs_and_index_and_then_only_changes(tmp_path):
    models = [_tiny("wide", 50), _tiny("narrow", 5)]
    assert freeze.freeze(models, tmp_path) == ["wide", "narrow"]
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(first) == {"wide.npz", "narrow.npz", INDEX}
    assert freeze.freeze(models, tmp_path) == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    models[0] = _tiny("wide", 60)
    assert freeze.changed_models(models, tmp_path) == ["wide"]
    assert freeze.freeze(models, tmp_path) == ["wide"]
    read_index.cache_clear()
    entry = read_index(tmp_path)["wide"]
    assert entry.weight_bytes == (3 + 1) * 60 * 4
    assert load_graph(graph_path(tmp_path, "wide")).digest == entry.digest


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
