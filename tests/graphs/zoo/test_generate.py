"""Freezing and generating networks."""

import csv
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import go_rl
from go_rl.core import GoRLError, MissingDependencyError, OpGraph, OpKind, ZooError, check_graph
from go_rl.graphs.zoo import freeze, zoo_entry, zoo_graph, zoo_names
from go_rl.graphs.zoo.generate.generated import GRAMMAR, generated_graph, generated_model
from go_rl.graphs.zoo.index import FOLDER, generated_name, generated_seed, read_index
from go_rl.graphs.zoo.models.inventory import ZOO_MODELS
from go_rl.graphs.zoo.models.vision import keras_applications

QUICK = (0, 3, 4, 7)
"""Seeds of kinds that differ."""
RECORD = Path(__file__).parents[3] / "experiments" / "results" / "generated_graphs.csv"


@cache
def record() -> list[dict[str, str]]:
    with RECORD.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def made(seed: int) -> OpGraph:
    return generated_graph(seed)


@pytest.mark.parametrize(
    "seed",
    [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in range(len(GRAMMAR))],
)
def test_a_seed_gives_the_graph_of_the_record(seed):
    """One of each kind, with what the reader's checks ask."""
    graph, row = made(seed), record()[seed]
    check_graph(graph)
    assert graph.digest.startswith(row["digest"])
    assert (graph.num_nodes, row["kind"]) == (int(row["nodes"]), generated_model(seed).kind)
    assert graph.name == generated_name(seed)


def test_no_generated_graph_is_one_that_the_zoo_holds_out():
    """Their nodes, edges and FLOP are those of no graph of validation or test, nor of another seed
    more than by chance."""

    def key(nodes: float, edges: float, gflop: float) -> tuple[int, int, float]:
        return int(nodes), int(edges), round(gflop, 3)

    frozen = {key(e.nodes, e.edges, e.flops / 1e9) for e in read_index(FOLDER).values()}
    rows = record()
    mine = {key(*(float(row[name]) for name in ("nodes", "edges", "gflop"))) for row in rows}
    assert not frozen & mine
    assert len(rows) >= 1000
    assert len({row["digest"] for row in rows}) > 0.98 * len(rows)


def test_generated_graphs_are_loaded_by_name():
    assert go_rl.load(f"zoo:{generated_name(7)}").digest == made(7).digest
    assert generated_seed("resnet50") is None
    assert generated_seed("generated-2-x") is None


@pytest.mark.parametrize("seed", [-1, 2**31, True])
def test_a_bad_seed_is_one_clear_error(seed):
    with pytest.raises(ZooError, match="a whole number 0 to 2"):
        generated_graph(seed)


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


def test_a_graph_is_frozen_again_when_more_changes_than_the_costs_kept(tmp_path, monkeypatch):
    """FLOP that the reader counts better leave a frozen graph alone; another operator does not."""
    model, frozen = RECIPES["ncf"], zoo_graph("ncf")
    traced = [replace(frozen, flops=frozen.flops * 2),
              replace(frozen, kind=np.full_like(frozen.kind, OpKind.OTHER))]  # fmt: skip
    monkeypatch.setattr(freeze, "trace_entry", lambda _: frozen)
    assert freeze.freeze([model], tmp_path) == ["ncf"]
    for graph, changed in zip(traced, ([], ["ncf"]), strict=True):
        monkeypatch.setattr(freeze, "trace_entry", lambda _, graph=graph: graph)
        assert freeze.changed_models([model]) == changed
        assert freeze.freeze([model], tmp_path) == changed
    assert read_index(tmp_path)["ncf"].digest == traced[1].digest


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
