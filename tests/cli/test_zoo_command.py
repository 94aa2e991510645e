"""``go-rl zoo``, and graphs of the zoo as models."""

from pathlib import Path

import go_rl
from go_rl.compare import submitted_plans
from go_rl.graphs.zoo import leaderboard, zoo_entry, zoo_names
from go_rl.graphs.zoo.generate.generated import generated_graph
from go_rl.graphs.zoo.problems import zoo_problems


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


def test_show_says_what_a_graph_is(command):
    text = command("zoo", "show", "resnet18").out
    for said in ("family resnet", "split train", "inference", "3.373 GFLOP", "46.8 MB",
                 "zoo:resnet18", zoo_entry("resnet18").digest):  # fmt: skip
        assert said in text
    shown = command("zoo", "show", "rnnlm-2-layers-training", "--json").document
    assert (shown["split"], shown["training"]) == ("training-form", True)
    assert shown["digest"] == zoo_entry("rnnlm-2-layers-training").digest


def test_wrong_names_are_answered_in_one_line(command):
    wrong = command("zoo", "show", "resnet-18")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "did you mean 'resnet18'?" in wrong.err
    wrong = command("zoo", "list", "--split", "tset")
    assert wrong.code == 2
    assert "train" in wrong.err


def test_other_commands_take_a_graph_of_the_zoo(command):
    document = command("graph", "zoo:vgg16", "--json").document
    assert len(document["nodes"]) == zoo_entry("vgg16").nodes
    flags = ("--hardware", "ring3", "--method", "greedy", "--samples", 2)
    run = command("optimize", "zoo:vgg16", *flags, "--out", "p", "--rules", "strict")
    assert run.code == 0, run.err
    assert command("check", "p/plan.json", "zoo:vgg16").code == 0
    wrong = command("optimize", "zoo:vgg-16")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "did you mean 'vgg16'?" in wrong.err


def test_best_known_plans_are_listed_with_their_origin(command):
    listed = command("zoo", "best", "--split", "test", "--json").document
    assert listed["version"] == "zoo-best-2"
    names = [problem["name"] for problem in listed["problems"]]
    assert names == [problem.name for problem in zoo_problems("test")]
    some = next(problem for problem in listed["problems"] if problem["best"] is not None)
    assert some["best"]["seconds"] >= some["best"]["bound"] > 0
    assert some["best"]["method"]
    text = command("zoo", "best", "--split", "test", "--objective", "makespan").out
    assert "wavenet-2x18-training.p100x2.all" in text
    assert "zoo-best-2: 25 problems" in text


def test_a_plan_is_submitted_to_a_board_of_ones_own(command, monkeypatch):
    made = ("--hardware", "ring16", "--rules", "strict", "--method", "greedy", "--samples", 1)
    assert command("optimize", "zoo:gcn-16-layers", *made, "--out", "p").code == 0
    worse = command("zoo", "best", "submit", "p/plan.json")
    assert worse.code == 0
    assert worse.out.startswith("not better, gcn-16-layers.ring16.strict: ")
    assert "nothing was written" in worse.out
    monkeypatch.setattr(leaderboard, "best_entries", dict)
    kept = command("zoo", "best", "submit", "p/plan.json", "--json").document
    assert (kept["accepted"], kept["before"]) == (True, None)
    listed = command("zoo", "best", "--objective", "ring", "--split", "train", "--json").document
    rows = {row["name"]: row for row in listed["problems"]}
    assert rows["gcn-16-layers.ring16.strict"]["source"] == "out/best"
    assert rows["gcn-16-layers.ring16.strict"]["best"] == kept["entry"]
    Path("out/best/leaderboard.json").unlink()
    assert command("zoo", "best", "--rebuild", "--board", "out/best").code == 0


def test_plans_are_verified(command, monkeypatch):
    for wrong, code in ([], 0), (["a: the list says 1 s; the plan takes 2 s"], 1):
        monkeypatch.setattr(submitted_plans, "frozen_differences", lambda _, wrong=wrong: wrong)
        found = command("zoo", "best", "--verify")
        assert found.code == code
        assert ("all is as listed", "the plan takes 2 s")[code] in found.out
        assert command("zoo", "best", "--verify", "--json").document["wrong"] == wrong


def test_a_submission_is_refused_in_one_line(command, chain):
    assert command("optimize", chain, "--method", "greedy", "--out", "p").code == 0
    for words, said in (
        (("p/plan.json",), "none of the named problems"),
        (("absent.json",), "absent.json: cannot be read"),
        (("p/plan.json", "--problem", "gcn-16"), "no problem is called 'gcn-16'"),
        (("p/plan.json", "--board", "p/plan.json"), "--board names a folder"),
    ):
        wrong = command("zoo", "best", "submit", *words)
        assert (wrong.code, wrong.err.count("\n")) == (2, 1), wrong.err
        assert said in wrong.err
    assert "PLAN" in command("zoo", "best", "submit", "--help").out
    assert "one argument too many: 'sumbit'" in command("zoo", "best", "sumbit", "p").err
    assert "holds no plan" in command("zoo", "best", "--rebuild").err


def test_the_command_makes_graphs_that_others_read(command, tmp_path):
    found = command("zoo", "generate", "--seed", 7, "--save", "made", "--json")
    assert found.code == 0, found.err
    assert found.document["graphs"][0]["digest"] == generated_graph(7).digest
    assert go_rl.load(tmp_path / "made" / "generated-2-7.npz").digest == generated_graph(7).digest
    assert command("zoo", "generate", "--count", 0).code == 2
