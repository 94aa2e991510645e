"""``go-rl check --explain``: what is legal beside a plan."""

import json

import pytest
from reference.small_rings import ring_problem

from go_rl.graphs.readers import save_graph


@pytest.fixture
def plan(command, tmp_path):
    """A plan of three nodes in a row on two chips, and its graph."""
    save_graph(ring_problem(3, [(0, 1), (1, 2)], 2).graph, tmp_path / "chain.npz")
    made = command(
        "optimize", "chain.npz", "--hardware", "ring2", "--method", "greedy", "--out", "out"
    )
    assert made.code == 0, made.err
    return "out/plan.json", "chain.npz"


def test_a_legal_split_is_one_of_those_counted(command, plan):
    found = command("check", *plan, "--explain")
    assert found.code == 0, found.err
    assert "3 legal partitions; this is one of them" in found.out


def test_json_holds_the_explanation(command, plan):
    found = json.loads(command("check", *plan, "--explain", "--json").out)
    assert found["explanation"] == {"partitions": 3, "moves": {}, "blamed": []}


def test_a_large_problem_is_refused_in_a_sentence(command):
    quick = ("--method", "greedy", "--samples", 5, "--out", "out")
    assert command("optimize", "zoo:bert-tiny", *quick).code == 0
    found = command("check", "out/plan.json", "zoo:bert-tiny", "--explain")
    assert found.code == 2
    assert "are too many to try" in found.err
