"""The frozen zoo: files, index and split agree, and mistakes are named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from go_rl import load
from go_rl.core import ReadError, ZooError, check_graph
from go_rl.graphs.zoo import SPLITS, ZOO_VERSION, index, page, zoo_entry, zoo_graph, zoo_names
from go_rl.graphs.zoo.index import (
    EXTRA,
    TEST,
    TEST_FAMILIES,
    VALIDATION,
    VALIDATION_FAMILIES,
    split_of,
)

PAGE = Path(__file__).parents[3] / "docs" / "zoo.md"
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


def test_sizes_range_from_fifty_to_past_fifty_thousand_nodes():
    nodes = [zoo_entry(name).nodes for name in zoo_names()]
    assert nodes == sorted(nodes)
    assert nodes[0] == 50
    assert nodes[-1] > 50_000
    tested = [zoo_entry(name).nodes for name in zoo_names("test")]
    assert tested[0] < 200
    assert tested[-1] > 10_000


def test_misspelt_names_are_answered_with_the_nearest():
    with pytest.raises(ZooError, match=r"graph 'inceptionv3'; did you mean 'inception-v3'\? See"):
        zoo_graph("inceptionv3")
    with pytest.raises(ZooError, match=r"unknown split 'tset'; did you mean 'test'\?"):
        zoo_names("tset")


def test_a_model_may_be_named_as_a_graph_of_the_zoo(tmp_path, monkeypatch):
    assert load("zoo:resnet18").digest == zoo_entry("resnet18").digest
    with pytest.raises(ReadError, match="frozen"):
        load("zoo:resnet18", {"batch": 4})
    with pytest.raises(ReadError, match="frozen"):
        load("zoo:resnet18", training=True)
    with pytest.raises(ZooError, match="did you mean 'resnet18'"):
        load("zoo:resnet-18")
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


def test_the_index_holds_its_version():
    document = json.loads((index.FOLDER / index.INDEX).read_text())
    assert document["version"] == ZOO_VERSION == index.FOLDER.name == "zoo-1"


def test_the_page_lists_every_graph_as_it_is_now():
    entries = [zoo_entry(name) for name in ALL]
    text = PAGE.read_text(encoding="utf-8")
    assert page.with_table(text, entries) == text
    for split in ("train", "validation", "test", "extra", "training-form"):
        assert f"| `{split}` | {len(zoo_names(split))} |" in text
    with pytest.raises(ZooError, match="must hold the lines"):
        page.with_table("no marks", entries)


def test_a_name_like_no_other_gets_no_suggestion_but_the_list():
    with pytest.raises(ZooError, match=r"^zoo-1 has no graph 'nope'\. See go-rl zoo list$"):
        zoo_graph("nope")
    with pytest.raises(ZooError, match=r"no graph 'bert'; did you mean 'bert-base'\? See"):
        zoo_graph("bert")
    with pytest.raises(ZooError, match="'generated-1-5'; generated ones are generated-2-0"):
        zoo_graph("generated-1-5")
