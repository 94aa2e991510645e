"""Networks of the zoo."""

import shutil
import subprocess
import sys

import jax
import pytest

from go_rl import load
from go_rl.core import ReadError, ZooError, check_graph
from go_rl.graphs.zoo import SPLITS, index, zoo_entry, zoo_graph, zoo_names
from go_rl.graphs.zoo.index import (
    EXTRA,
    TEST,
    TEST_FAMILIES,
    VALIDATION,
    VALIDATION_FAMILIES,
    split_of,
)
from go_rl.graphs.zoo.models.building import flax_model, integers
from go_rl.graphs.zoo.models.language.recurrent import GNMT
from go_rl.graphs.zoo.models.language.sized import SIZED

ALL = zoo_names(training=True)


def _families(split):
    return {zoo_entry(name).family for name in zoo_names(split)}


def test_every_frozen_graph_is_sound_and_is_what_the_index_says():
    for name in ALL:
        entry, graph = zoo_entry(name), zoo_graph(name)
        check_graph(graph)
        assert (graph.name, graph.digest) == (name, entry.digest)
        assert (graph.num_nodes, graph.num_edges) == (entry.nodes, entry.edges)
        assert entry.flops == pytest.approx(graph.flops.sum())
        assert 0 <= entry.weight_bytes <= graph.weight_bytes.sum()
        assert graph.is_backward.any() <= entry.training
    files = {path.name for path in index.FOLDER.iterdir()}
    assert files == {f"{name}.npz" for name in ALL} | {index.INDEX}


def test_the_split_has_the_stated_sizes_and_every_graph_has_one_part():
    sizes = {split: len(zoo_names(split)) for split in ("train", "validation", "test")}
    assert sizes == {"train": 66, "validation": 5, "test": 16}
    assert sum(len(zoo_names(split)) for split in SPLITS) == len(ALL) == len(set(ALL))
    for name in ALL:
        entry = zoo_entry(name)
        assert entry.split == split_of(name, entry.family, entry.training)
    assert set(zoo_names("training-form")) == set(ALL) - set(zoo_names())
    for listed in (TEST, VALIDATION, EXTRA):
        assert set(listed) <= set(ALL)


def test_families_held_out_have_no_member_in_training():
    assert _families("test") == set(TEST_FAMILIES)
    assert _families("validation") == set(VALIDATION_FAMILIES)
    assert not _families("train") & (_families("test") | _families("validation"))
    assert not _families("test") & _families("validation")


def test_misspelt_names_are_answered_with_the_nearest():
    with pytest.raises(ZooError, match=r"graph 'inceptionv3'; did you mean 'inception-v3'\? See"):
        zoo_graph("inceptionv3")
    with pytest.raises(ZooError, match=r"unknown split 'tset'; did you mean 'test'\?"):
        zoo_names("tset")


def test_a_model_may_be_named_as_a_graph_of_the_zoo(tmp_path, monkeypatch):
    assert load("zoo:resnet18").digest == zoo_entry("resnet18").digest
    with pytest.raises(ReadError, match="frozen"):
        load("zoo:resnet18", training=True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(index.graph_path(index.FOLDER, "vgg16"), "zoo:resnet18")
    assert load("zoo:resnet18").name == "vgg16", "a file of that name comes first"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the zoo's index with one graph, which tests may damage."""
    for name in ("index.json", "vgg16.npz", "resnet18.npz"):
        shutil.copy(index.FOLDER / name, tmp_path)
    monkeypatch.setattr(index, "FOLDER", tmp_path)
    return tmp_path


def test_a_swapped_or_missing_file_is_refused(folder):
    shutil.copy(folder / "vgg16.npz", folder / "resnet18.npz")
    with pytest.raises(ZooError, match=r"resnet18\.npz: holds another graph"):
        zoo_graph("resnet18")
    (folder / "vgg16.npz").unlink()
    with pytest.raises(ReadError, match=r"vgg16\.npz"):
        zoo_graph("vgg16")


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"graphs": [{"name": "a"}]}', '{"graphs"'])
def test_a_damaged_index_is_refused(folder, text):
    path = folder / index.INDEX
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ZooError, match=r"index\.json: not a readable index of zoo-1"):
        zoo_names()


def test_listing_imports_no_tracer():
    code = (
        "import sys, go_rl.graphs.zoo as zoo; assert zoo.zoo_names('test'); zoo.zoo_graph('vgg16');"
        "print([m for m in ('jax', 'flax', 'keras') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _count(built):
    """Number of parameters of what is built."""
    return sum(x.size for x in jax.tree.leaves(built[1][0]))


@pytest.mark.parametrize("layers", [2, 4, 8])
def test_gnmt_parameters_by_hand(layers):
    wide, inner = 4 * 1024 * 3 * 1024 + 4096, 4 * 1024 * 2 * 1024 + 4096
    encoder = 2 * inner + wide + (layers - 2) * inner
    attention = 2 * 1024 * 1024 + 1024
    tables = 2 * 16000 * 1024 + 1024 * 16000 + 16000
    by_hand = encoder + layers * wide + attention + tables
    built = flax_model(GNMT(layers), integers(1, 2), integers(1, 2))
    assert _count(built) == by_hand


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opt-1.3b", "gpt3-xl"])
def test_parameters_are_as_published(name):
    """1,316 million of the released OPT-1.3B; 1.3 billion, Brown et al. 2020, table 2.1."""
    _, args, weights = SIZED[name].build()
    total = sum(x.size for i in weights for x in jax.tree.leaves(args[i]))
    assert total / 1e6 == pytest.approx(1316, rel=0.005)


@pytest.mark.parametrize(
    ("name", "dims", "message"),
    [
        ("bert-large", {"batches": 8}, "no dimension 'batches'; did you mean 'batch'"),
        ("bert-large", {"sequence": 513}, "zoo:bert-large: sequence=513: the model has 512"),
        ("gpt2-large", {"batch": -1}, "batch"),
        ("gpt2-large", {"batch": 0}, "batch"),
        ("resnet50", {"batch": 8}, "frozen, without symbolic dimensions, so 'batch' cannot"),
        ("gpt3xl", {"batch": 2}, "did you mean 'gpt3-xl'"),
        ("opt-1.3b-trainin", {"batch": 2}, r"did you mean 'opt-1\.3b-training'"),
    ],
)
def test_names_and_dimensions_that_are_not_there(name, dims, message):
    with pytest.raises((ReadError, ZooError), match=message):
        load(f"zoo:{name}", dims)
