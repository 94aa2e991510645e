"""``go-rl check``, ``graph``, ``hardware``, ``zoo``, and the last lines of all commands."""

import json
from importlib.metadata import version

import pytest
from profile_documents import chain_document

from go_rl.cli.model_arguments import ModelArguments, positions_of
from go_rl.cli.table import COMMANDS
from go_rl.compare import submitted_plans
from go_rl.core import GoRLError, Hardware, ReadError, load_hardware
from go_rl.core.files.typed_json import from_json
from go_rl.graphs.zoo import zoo_names
from go_rl.policy.learn.config import (
    TRAININGS,
    NodesTrainConfig,
    RingTrainConfig,
    training_from_json,
)


def test_graph_prints_nodes_and_edges(command, chain):
    found = command("graph", chain, "--json")
    assert found.code == 0, found.err
    document = found.document
    assert document["name"] == "chain"
    assert [node["id"] for node in document["nodes"]] == [0, 1, 2, 3, 4, 5]
    assert [(e["source"], e["target"]) for e in document["edges"]] == [
        (0, 1), (1, 2), (2, 3), (3, 4), (4, 5),
    ]  # fmt: skip
    node = document["nodes"][1]
    assert node["seconds"] == {"accelerator": 1e-3, "cpu": 1e-2}
    assert (node["weight_bytes"], node["kind"], node["source"]) == (10.0, "other", "nodes[1]")


def test_graph_saves_what_every_command_reads_back(command, chain):
    assert command("graph", chain, "--save", "deep/chain.npz").code == 0
    first, second = command("graph", chain, "--json"), command("graph", "deep/chain.npz", "--json")
    assert first.document == second.document


def test_package_list_names_the_presets(command):
    assert "ring36" in command("hardware", "list").out
    listed = command("hardware", "list", "--json").document
    assert [Hardware.from_json(d).name for d in listed][:3] == ["ring6", "ring16", "ring36"]


def test_package_show_prints_what_a_package_file_holds(command, tmp_path):
    shown = command("hardware", "show", "ring4", "--json").document
    (tmp_path / "mine.json").write_text(json.dumps(shown))
    assert load_hardware(tmp_path / "mine.json") == load_hardware("ring4")
    assert "16 GB/s" in command("hardware", "show", "mine.json").out


def test_version(command):
    assert command("--version").out == f"go-rl {version('go_rl')}\n"


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    [
        (RingTrainConfig, {"updates": "3"}, "t.json: updates must be a whole number, not '3'"),
        (RingTrainConfig, {"updates": True}, "t.json: updates must be a whole number, not True"),
        (RingTrainConfig, {"ppo": {"clip": "x"}},
         "t.json: ppo: clip must be a finite number, not 'x'"),
        (RingTrainConfig, {"ppo": 3}, "t.json: ppo: must be a JSON object, not 3"),
        (RingTrainConfig, {"policy": {"hidden": 0}}, "hidden"),
        (NodesTrainConfig, {"validation": 3}, "validation must be a text or null, not 3"),
    ],
)  # fmt: skip
def test_a_bad_field_of_a_configuration_is_named(kind, document, message):
    with pytest.raises(GoRLError, match=message):
        from_json(kind, document, "t.json")


def test_training_configurations_survive_json():
    ring = RingTrainConfig(updates=7, hardware=("ring4",), samples=3, solver="fix")
    for config in (ring, *(kind(updates=7, seed=2) for kind in TRAININGS.values())):
        assert training_from_json(json.loads(config.to_json()), "t.json") == config


def test_sizes_of_dimensions():
    assert ModelArguments("m", ("batch=8,seq=4", "loop.trips=3")).dims == {
        "batch": 8, "seq": 4, "loop.trips": 3,
    }  # fmt: skip
    for wrong in ("batch", "=8", "batch=0", "batch=-1", "batch=1.5"):
        with pytest.raises(ReadError, match="NAME=SIZE"):
            ModelArguments("m", (wrong,))
    assert ModelArguments("m", ("batch=8", "batch=8")).dims == {"batch": 8}
    with pytest.raises(ReadError, match="batch has two sizes, 8 and 4"):
        ModelArguments("m", ("batch=8", "batch=4"))


def test_shapes_of_inputs_and_positions_of_weights():
    told = ModelArguments("m", input=("x=1x224x224x3", "tokens:0=4"), weight_args="0,2")
    assert told.inputs == {"x": (1, 224, 224, 3), "tokens:0": (4,)}
    assert told.weights == (0, 2)
    assert ModelArguments("m", input=("s=",)).inputs == {"s": ()}
    values = ModelArguments("m", ("flag.value=0",), input=("rate=16000", "flag=0"))
    assert values.inputs == {"rate": (16000,), "flag": 0}  # the model's rank tells a value
    assert values.dims == {"flag.value": 0}
    assert ModelArguments("m", weight_args="none").weights == ()
    assert (ModelArguments("m").inputs, ModelArguments("m").weights) == (None, None)
    for wrong in ("x", "=2", "x=2x", "x=2x0", "x=axb", "x=-1"):
        with pytest.raises(ReadError, match="NAME=SIZExSIZE"):
            ModelArguments("m", input=(wrong,))
    with pytest.raises(ReadError, match=r"--weight-args .* must be positions"):
        ModelArguments("m", weight_args="0;1")


SCALED = """\
import jax, jax.numpy as jnp

def scaled(rows=2):
    def run(kernel, x):
        return jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: y @ kernel, x)
    return run, (jnp.ones((4, 4)), jax.ShapeDtypeStruct((rows, 4), jnp.float32))
"""


def test_what_is_said_of_a_function_reaches_it_and_its_plan(command, tmp_path):
    (tmp_path / "scaled_models.py").write_text(SCALED)
    model = "scaled_models.py:scaled"
    assert "--trip-count N" in command("graph", model).err
    shown = command("graph", model, "--trip-count", 3, "--dim", "rows=5")
    assert "rows=5, trip_count=3" in shown.out
    assert "--weight-args 0" in shown.out
    told = ("--trip-count", 3, "--weight-args", 0)
    assert "note" not in command("graph", model, *told).out
    budget = ("--method", "greedy", "--samples", 1, "--out", "out")
    assert command("optimize", model, *told, *budget).code == 0
    # The plan knows the trips; which arguments are weights, the user says again.
    assert command("check", "out/plan.json", model, "--weight-args", 0).out.startswith("accepted")


def test_check_reads_what_graph_saved(command, tmp_path):
    """A plan for a model with sizes, and the graph of that model."""
    (tmp_path / "scaled_models.py").write_text(SCALED)
    told = ("scaled_models.py:scaled", "--trip-count", 2, "--dim", "rows=3", "--weight-args", 0)
    assert command("graph", *told, "--save", "model.npz").code == 0
    budget = ("--method", "greedy", "--samples", 1, "--out", "out")
    assert command("optimize", *told, *budget).code == 0
    check = ("check", "out/plan.json", "model.npz")
    assert command(*check).out.startswith("accepted")
    assert "saved with dimensions: rows=3" in command(*check, "--dim", "rows=4").err


def test_the_commands_are_listed(command):
    listed = command("--help").out
    assert all(f"  {each.words} " in listed for each in COMMANDS)
    assert "train kernels" in command("train", "-h").out


@pytest.mark.parametrize(
    ("text", "positions"),
    [("none", ()), ("0,2", (0, 2)), ("0-3", (0, 1, 2, 3)), ("5, 0-2,1", (5, 0, 1, 2))],
)
def test_positions_of_weights(text, positions):
    assert positions_of(text) == positions


@pytest.mark.parametrize("text", ["3-1", "a", "0-", "0,", "-1", "", "0-99999999999", "0..3"])
def test_no_positions_of_weights(text):
    with pytest.raises(ReadError, match="such as 0,2 or 0-99, or none"):
        positions_of(text)


NPU = ("--kind", "npu", "--count", 4, "--tflops", 1, "--memory-gb", 4, "--memory-gb-per-s", 50)


def test_hardware_new_writes_what_optimize_reads(command, chain):
    mesh = "--links mesh --shape 2 2 --link-gb-per-s 10 --cannot Gather* loop"
    made = command("hardware", "new", "mine.json", *NPU, *mesh.split())
    assert (made.code, made.err) == (0, "")
    assert "links: mesh of 2 x 2, 10 GB/s one way" in made.out
    assert "npu cannot run: Gather*, loop" in made.out
    assert made.out.splitlines()[-1] == "next: go-rl optimize zoo:resnet50 --hardware mine.json"
    assert load_hardware("mine.json").name == "mine"
    flags = ("--objective", "makespan", "--method", "heft", "--samples", 2, "--out", "planned")
    found = command("optimize", "zoo:vae-3-layers", "--hardware", "mine.json", *flags)
    assert found.code == 0, found.err
    again = command("hardware", "new", "mine.json", "--devices", "a100x2")
    assert (again.code, load_hardware("mine.json").num_devices) == (2, 4)
    assert "there is such a file; name another, or give --force" in again.err
    assert command("hardware", "new", "mine.json", "--devices", "a100x2", "--force").code == 0
    assert load_hardware("mine.json").num_devices == 2


def test_hardware_new_asks_on_a_terminal(command, monkeypatch):
    answers = iter(["t4x2 l4", "", "", ""])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert command("hardware", "new", "asked.json").code == 0
    asked = load_hardware("asked.json")
    assert [device.kind for device in asked.devices] == ["t4", "t4", "l4"]
    assert asked.links.bandwidth == 12e9


def last(text: str) -> str:
    return text.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "following"),
    [
        ("hardware list", "hardware show ring6"),
        ("hardware show p100x2", "optimize zoo:resnet50 --hardware p100x2"),
        ("hardware show ring4", "optimize zoo:resnet50 --hardware ring4"),
        ("hardware this", "hardware this --out this.json"),
        ("hardware this --out here.json", "optimize zoo:resnet50 --hardware here.json"),
        ("zoo list --split test", "zoo show unet"),
        ("zoo show vgg16", "optimize zoo:vgg16"),
        ("graph zoo:bert-tiny", "optimize zoo:bert-tiny"),
        ("graph zoo:bert-tiny --unknown bytes", "optimize zoo:bert-tiny --unknown bytes"),
        ("graph zoo:bert-tiny --save tiny.npz", "optimize tiny.npz"),
        ("graph chain.json", "optimize chain.json"),
    ],
)
def test_commands_end_with_what_comes_next(command, words, following, tmp_path):
    (tmp_path / "chain.json").write_text(json.dumps(chain_document()))
    found = command(*words.split())
    assert (found.code, last(found.out)) == (0, f"next: go-rl {following}")
    with_json = command(*words.replace("here.json", "again.json").split(), "--json")
    assert with_json.document
    assert "next:" not in with_json.out


def test_list_shows_every_graph_and_each_part_alone(command):
    listed = command("zoo", "list", "--json").document
    assert listed["version"] == "zoo-1"
    assert [e["name"] for e in listed["graphs"]] == list(zoo_names(training=True))
    tested = command("zoo", "list", "--split", "test", "--json").document["graphs"]
    assert {e["name"] for e in tested} == set(zoo_names("test"))
    text = command("zoo", "list", "--split", "validation").out
    assert "5 graphs" in text
    assert "densenet121" in text
    assert "resnet18" not in text


def test_plans_are_verified(command, monkeypatch):
    for wrong, code in ([], 0), (["a: the list says 1 s; the plan takes 2 s"], 1):
        monkeypatch.setattr(submitted_plans, "frozen_differences", lambda _, wrong=wrong: wrong)
        found = command("zoo", "best", "--verify")
        assert found.code == code
        assert ("all is as listed", "the plan takes 2 s")[code] in found.out
        assert command("zoo", "best", "--verify", "--json").document["wrong"] == wrong


def test_a_submission_is_refused_in_one_line(command, refused, chain):
    assert command("optimize", chain, "--method", "greedy", "--out", "p").code == 0
    for words, said in (
        (("p/plan.json",), "none of the named problems"),
        (("p/plan.json", "--problem", "gcn-16"), "no problem is called 'gcn-16'"),
        (("p/plan.json", "--board", "p/plan.json"), "--board names a folder"),
    ):
        refused("zoo", "best", "submit", *words, said=said)
    assert "PLAN" in command("zoo", "best", "submit", "--help").out
