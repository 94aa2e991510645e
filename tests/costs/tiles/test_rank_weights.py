"""Weights of ranks on disk: read as written, and refused."""

import pytest
from costs.tiles.ranks import learned

from go_rl.core import CheckpointError
from go_rl.costs.tiles.ranks import predictor
from go_rl.costs.tiles.ranks.predictor import RankPredictor, shipped_ranks
from go_rl.runtime.array_file import read_parameters, write_parameters


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("ranks") / "ranks-cpu-1.npz"
    learned().save(found)
    return found


def test_shipped_weights_are_found_by_target_and_kind(path, monkeypatch):
    monkeypatch.setattr(predictor, "SHIPPED", path.parent)
    found = shipped_ranks("cpu-1", "tiles")
    assert found is not None
    assert found.name == "ranks-cpu-1"
    assert shipped_ranks("cpu-2", "tiles") is None


def test_other_files_are_refused(path, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="no rank weights 'ranks-9'"):
        RankPredictor.load("ranks-9")
    bad = tmp_path / "bad.npz"
    bad.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"bad\.npz: cannot be read as weights"):
        RankPredictor.load(bad)
    manifest, arrays = read_parameters(path)
    for changed, complaint in (
        ({"format": "go_rl-kernel-cost"}, "is no file of rank weights"),
        ({"interface": 1}, "its interface is 1, and this version of go_rl reads 2"),
        ({"network": {"embedding": 3}}, "manifest does not fit this version"),
        ({"network": {**manifest["network"], "head": 4}}, "this version expects"),
    ):
        write_parameters(bad, _tree(arrays), {**manifest, **changed})
        with pytest.raises(CheckpointError, match=complaint):
            RankPredictor.load(bad)
    monkeypatch.setattr("go_rl.costs.tiles.ranks.data.feature_names", lambda: ("one",))
    with pytest.raises(CheckpointError, match="its features is "):
        RankPredictor.load(path)


def _tree(arrays):
    from go_rl.runtime.array_file import parameter_tree

    return parameter_tree(arrays)
