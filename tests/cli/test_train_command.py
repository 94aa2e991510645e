"""``go-rl train policy``: the configuration in the folder of a run."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from graphs.readers.onnx_models import parsed
from policy.learn.toys import CONFIG, toy_zoo
from policy.tiny import tiny_agent

from go_rl.cli.stopping import Terminated
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import DispatchTrainConfig, NodesTrainConfig
from go_rl.policy.learn.ppo import new_learner
from go_rl.policy.learn.run_state.checkpoints import Checkpoints, TrainState

NODES, DISPATCH = (("train", "policy", "--network", name) for name in ("nodes", "dispatch"))


def finished_run(folder: Path, config, agent) -> None:
    """A run of four updates that is over, as its command leaves it."""
    learner = new_learner(agent.params, config.ppo)
    state = TrainState(4, learner, RunningBaseline(), agent.params, 0.5, [(4, 0.5)])
    checkpoints = Checkpoints(folder / "checkpoints")
    checkpoints.save(state, config)
    checkpoints.close()
    (folder / "config.json").write_text(config.to_json() + "\n")


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of ``go-rl train policy`` in the folder ``run``, and its configuration."""
    toy_zoo(monkeypatch)
    finished_run(tmp_path / "run", CONFIG, tiny_agent())
    (tmp_path / "same.json").write_text(CONFIG.to_json())
    (tmp_path / "other.json").write_text(replace(CONFIG, seed=1).to_json())
    return tmp_path / "run"


def test_a_run_of_another_configuration_is_refused_and_left_alone(refused, run):
    before = content(run)
    said = "was made with another configuration"
    refused("train", "policy", run, "--config", "other.json", said=said)
    assert content(run) == before


def test_a_refused_run_does_not_stand_in_the_way_of_a_corrected_one(command, tmp_path):
    model = parsed("(float[4,4] x) => (float[4,4] y) { y = Relu(x) }")
    (tmp_path / "one.onnx").write_bytes(model.SerializeToString())
    found = command(*DISPATCH[:2], "new", *DISPATCH[2:], "--graphs", "one.onnx")
    assert (found.code, "no problem has anything to decide" in found.err) == (2, True), found.err
    assert not (tmp_path / "new" / "config.json").exists()


def test_the_same_configuration_goes_on(command, run):
    found = command("train", "policy", run, "--config", "same.json")
    assert found.code == 0, found.err
    assert "best validation reward +0.5000 (higher is better) after 4 updates" in found.out
    assert json.loads((run / "config.json").read_text())["seed"] == 0


@pytest.fixture
def begun(monkeypatch):
    """Configurations that the command hands to the trainer, which is not run."""
    seen = []

    def pretrain(config, folder, advance, pricer, group):
        seen.append(config)
        return SimpleNamespace(card={"validation": []})

    monkeypatch.setattr("go_rl.policy.learn.pretrain.pretrain", pretrain)
    return seen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "odd.json: not JSON"),
        ("[]", "odd.json: must be a JSON object, not []"),
        ('{"udpates": 3}', "odd.json: unknown field 'udpates'; did you mean 'updates'?"),
        ('{"ppo": {"clipp": 3}}', "odd.json: ppo: unknown field 'clipp'; did you mean 'clip'?"),
        (
            '{"network": "rnig"}',
            "one of ring, orders, nodes, dispatch, not 'rnig'; did you mean 'ri",
        ),
        (
            '{"network": []}',
            "odd.json: network must be one of ring, orders, nodes, dispatch, not []",
        ),
        (
            '{"network": "ring"}',
            "odd.json: is a configuration of network ring, not nodes; give --net",
        ),
        ('{"updates": -1}', "odd.json: train: updates must be >= 1"),
        ('{"decide": [["placment"]]}', "unknown decision 'placment'; did you mean 'placement'?"),
    ],
)
def test_an_odd_file_is_refused_before_anything_is_written(refused, tmp_path, begun, text, message):
    (tmp_path / "odd.json").write_text(text)
    refused(*NODES, "new", "--config", "odd.json", said=message)
    assert begun == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("join", [" ", "="])
def test_flags_change_the_fields_of_a_file(command, tmp_path, begun, join):
    (tmp_path / "some.json").write_text('{"updates": 3, "seed": 5, "policy": {"hidden": 32}}')
    words = f"--config{join}some.json --hardware ring4 --seed 0 --policy.heads 2"
    assert command("train", "policy", "new", *words.split()).code == 0
    (config,) = begun
    assert (config.updates, config.hardware, config.seed) == (3, ("ring4",), 0)
    assert (config.policy.hidden, config.policy.heads) == (32, 2)


def test_a_file_knows_its_network(command, tmp_path, begun):
    (tmp_path / "nodes.json").write_text(NodesTrainConfig(updates=3, chained=2).to_json())
    assert command("train", "policy", "new", "--config", "nodes.json", "--top", "0.3").code == 0
    assert begun == [NodesTrainConfig(updates=3, chained=2, top=0.3)]


def test_a_run_that_has_not_recorded_its_network_goes_on(command, run):
    old = json.loads(CONFIG.to_json())
    assert old.pop("network") == "ring"
    for path in ("old.json", "run/config.json"):
        Path(path).write_text(json.dumps(old))
    assert command("train", "policy", "run", "--config", "old.json").code == 0
    assert CONFIG.differing(json.dumps(old)) == ""


def test_a_run_of_another_network_differs_in_that_alone():
    other = DispatchTrainConfig().to_json()
    assert CONFIG.differing(other) == "network was 'dispatch' and is 'ring'"


def test_a_damaged_configuration_of_a_run_is_named(refused, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "config.json").write_text(DispatchTrainConfig().to_json()[:20])
    found = refused(*DISPATCH[:2], "new", *DISPATCH[2:], said="new/config.json: is damaged (")
    assert "another configuration" not in found.err


def test_a_damaged_configuration_of_a_run_with_checkpoints_is_named(refused, run):
    (run / "config.json").write_text(CONFIG.to_json()[:20])
    before = content(run)
    refused("train", "policy", run, "--config", "same.json", said="config.json: is damaged (")
    assert content(run) == before


def test_a_folder_of_another_command_is_left_alone(refused, tmp_path):
    text = json.dumps({"source": {}, "search": {}})
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "config.json").write_text(text)
    refused(*DISPATCH[:2], "new", *DISPATCH[2:], said="config.json: is the options of a search")
    assert (tmp_path / "new" / "config.json").read_text() == text


def test_a_stopped_run_says_what_it_kept(command, run, monkeypatch):
    def pretrain(*given, **options):
        raise Terminated

    monkeypatch.setattr("go_rl.policy.learn.pretrain.pretrain", pretrain)
    found = command("train", "policy", run, "--config", "same.json")
    assert found.code == 143
    assert "stopped; the checkpoint after 4 updates is kept" in found.err
    assert "the same command goes on from there" in found.err
    found = command("train", "policy", "new")
    assert "stopped; no checkpoint yet" in found.err
    monkeypatch.setattr("go_rl.policy.learn.prototypes.run.pretrain_prototypes", pretrain)
    found = command(*DISPATCH[:2], "searched", *DISPATCH[2:])
    assert "stopped; finished searches and stages are kept; the same command goes" in found.err
