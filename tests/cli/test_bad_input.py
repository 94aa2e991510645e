"""Bad input through the command line: one clear line on standard error, and exit code 2."""

import json
from pathlib import Path

import pytest
from profile_documents import chain_document, node_document


def profile(**changes) -> bytes:
    return json.dumps(chain_document(**changes)).encode()


CHAIN_EDGE = {"sourceId": 0, "destId": 1, "cost": 0.1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["optimize", "zoo:unet", "--out", ""], "the argument behind --out is empty"),
        (["optimize", "zoo:unet", "--out="], "the argument behind --out is empty"),
        (["measure", "kernels", ""], "the argument behind measure kernels is empty"),
        (["tune", "kernels", "zoo:unet", "--ranks", ""], "the argument behind --ranks is empty"),
    ],
)
def test_an_empty_argument_is_not_the_current_folder(command, words, said):
    found = command(*words)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert said in found.err
    assert not [*Path().iterdir()]


def test_a_network_of_the_zoo_is_named_without_its_prefix_where_only_those_are_taken(command):
    found = command("measure", "kernels", "out", "--models", "zoo:ncf")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "no model of the zoo is called 'zoo:ncf'; did you mean 'ncf'?" in found.err


@pytest.mark.parametrize(
    "words",
    ["optimize --objective ring", "optimize --objective makespan", "optimize",
     "finetune --objective ring", "finetune --objective makespan", "evaluate --hardware ring2"],
)  # fmt: skip
def test_the_cost_reaches_every_command(command, chain, words, monkeypatch):
    """The chain is a profile, which the analytical model cannot price."""
    monkeypatch.setattr("go_rl.compare.portfolio.portfolio.compile_methods", lambda objective: None)
    name, *flags = words.split()
    found = command(name, chain, *flags, "--cost", "analytical")
    assert (found.code, found.out) == (2, "")
    last = found.err.splitlines()[-1]
    assert "no FLOP, which the analytical model needs; use --cost profiled" in last


@pytest.mark.parametrize(
    "words",
    ["optimize zoo:bert-base", "finetune zoo:bert-base", "evaluate zoo:bert-base",
     "train policy run", "train policy run --network dispatch"],
)  # fmt: skip
def test_unknown_costs_are_refused(command, words):
    found = command(*words.split(), "--cost", "lerned")
    assert found.code == 2
    assert "lerned'; did you mean 'learned'?" in " ".join(found.err.split())


def test_names_of_files_reach_the_terminal_escaped_and_short(command, tmp_path):
    """An operator of 300 letters made `graph` print its table for ever; others move the cursor."""
    path = tmp_path / "\x1b[2J\x07.json"
    nodes = [node_document(0, name="X" * 300), node_document(1)]
    path.write_bytes(profile(nodes=nodes, edges=[CHAIN_EDGE]))
    found = command("graph", path)
    assert found.code == 0, found.err
    assert "\x1b" not in found.out
    assert r"\x1b[2J\x07" in found.out
    assert "XXX…XXX" in found.out
    lines = found.out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("next: ")) <= 160
    path.write_bytes(b'{"nodes": [], "' + b"x" * 2_000_000 + b'": ["\x1b[2J"]}')
    found = command("optimize", path, "--hardware", "x" * 2_000_000)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert "\x1b" not in found.err
    assert len(found.err) < 2100
    found = command("records", "list", "y" * 3000 + "\x1b")
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert "\x1b" not in found.err
    assert len(found.err) < 2100


OURS = {
    "train policy new --config out/plan.json": ("out/plan.json: is a plan", "the configuration of"),
    "train policy new --config mine.json": ("mine.json: is hardware", "the configuration of"),
    "optimize chain.json --hardware out/methods.json": ("is the methods of a search", "hardware"),
    "predict zoo:ncf --device mine.json": ("mine.json: is hardware", "the data sheet"),
    "predict zoo:ncf --device out/config.json": ("is the options of a search", "the data sheet"),
    "check out/config.json chain.json": ("out/config.json: is the options of", "a plan"),
    "check mine.json chain.json": ("mine.json: is hardware", "a plan"),
    "view mine.json chain.json": ("mine.json: is hardware", "a plan"),
    "check out chain.json": ("out: is a folder", "a plan, such as plan.json"),
    "check --split out chain.json": ("out: is a folder", "without stages.json"),
    "check --split mine.json chain.json": ("mine.json: is hardware", "no split"),
    "graph out/plan.json": ("out/plan.json: is a plan", "a model"),
    "graph printed.json": ("printed.json: is a graph that go-rl graph --json printed", "a model"),
    "optimize chain.json --hardware printed.json": ("is a graph that go-rl graph", "hardware"),
}  # fmt: skip
"""Files of our own where others are asked, and what is said: what it is, and what is wanted."""


def test_another_of_our_own_files_is_called_by_its_name(command, chain, untimed):
    words = ("--method", "greedy", "--samples", 5, "--out", "out")
    assert command("optimize", chain, *words).code == 0
    assert command("hardware", "new", "mine.json", "--devices", "t4").code == 0
    Path("printed.json").write_text(command("graph", chain, "--json").out)
    before = sorted(Path().rglob("*"))
    for line, (found, wanted) in OURS.items():
        run = command(*line.split())
        assert (run.code, run.out, run.err.count("\n")) == (2, "", 1), (line, run.err)
        assert found in run.err, (line, run.err)
        assert wanted in run.err.partition(found)[2], (line, run.err)
    assert sorted(Path().rglob("*")) == before
