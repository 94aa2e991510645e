"""Where results may go: never over another model's, never where something else lies."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from profile_documents import chain_document

from go_rl.api.load import load
from go_rl.cli.folders import check_file, check_folder, own_folder
from go_rl.core import Plan, PlanError

QUICK = ("--method", "greedy", "--hardware", "ring2", "--samples", 1)


@pytest.fixture
def graph(chain):
    return load(chain)


def plan_alone(folder, result, config):
    """Drawing takes seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    result.best.save(folder / "plan.json")
    return ("plan.json",)


def test_models_of_one_file_name_have_folders_of_their_own(command, tmp_path, monkeypatch):
    monkeypatch.setattr("go_rl.report.plan_folder.write_plan_folder", plan_alone)
    for place, length in (("a", 6), ("b", 4)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "model.json").write_text(json.dumps(chain_document(length)))
    said = [command("optimize", f"{place}/model.json", *QUICK).out for place in "abab"]
    assert [("written to out/model:" in out) for out in said] == [True, False, True, False]
    assert [("written to out/model-2:" in out) for out in said] == [False, True, False, True]
    plans = [Plan.load(tmp_path / "out" / name / "plan.json") for name in ("model", "model-2")]
    assert [len(plan.nodes) for plan in plans] == [6, 4]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["model", "model-2"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"graph_hash": 1}', "\x00"])
def test_a_plan_of_nobody_knows_what_stays(content, graph, tmp_path):
    for name in ("m", "m-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text(content)
    (tmp_path / "m-3").write_text("a file")
    with ExitStack() as held:
        assert own_folder(tmp_path / "m", graph, held) == tmp_path / "m-4"


def test_runs_that_end_together_lose_no_plan(graph, tmp_path):
    with ExitStack() as held:
        found = [own_folder(tmp_path / "m", graph, held).name for _ in range(3)]
    assert found == ["m", "m-2", "m-3"]
    assert [p.name for p in tmp_path.iterdir()] == ["chain.json"]  # no folder stays empty


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(PlanError, match="--out names a folder"):
            check_folder(folder)
    named = tmp_path / "file" / "x.npz"
    with pytest.raises(PlanError) as told:
        check_file(named, "--save")
    inside = f"--save: {named}: cannot be written ({named.parent} is not a folder)"
    assert str(told.value) == inside


@pytest.mark.parametrize("name", ["plan.json", "gantt.svg"])
def test_a_pipe_or_folder_in_the_way_of_a_plan_is_told_before_the_search(
    name, command, chain, tmp_path, monkeypatch
):
    monkeypatch.setattr("go_rl.api.optimize.optimize", None)  # not reached
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / name)
    (tmp_path / "folders" / name).mkdir(parents=True)
    for folder, kind in (("pipes", "a pipe"), ("folders", "a folder")):
        found = command("optimize", chain, *QUICK, "--out", folder)
        assert (found.code, found.out) == (2, "")
        assert found.err == (
            f"go-rl: {folder}/{name}: cannot be written (it is {kind}, not a regular file)\n"
        )
        assert os.listdir(folder) == [name]


def test_a_plan_is_read_from_a_pipeline(command, chain):
    assert command("optimize", chain, *QUICK, "--out", "p").code == 0
    theirs, ours = os.pipe()
    with open(ours, "wb") as pipe:
        pipe.write(Path("p/plan.json").read_bytes())
    with open(theirs):
        assert command("check", f"/dev/fd/{theirs}", chain).code == 0
