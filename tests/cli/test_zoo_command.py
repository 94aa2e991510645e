"""``go-rl zoo``, and graphs of the zoo as models."""

import go_rl
from go_rl.graphs.zoo import zoo_entry, zoo_names
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
    assert listed["version"] == "zoo-best-1"
    names = [problem["name"] for problem in listed["problems"]]
    assert names == [problem.name for problem in zoo_problems("test")]
    some = next(problem for problem in listed["problems"] if problem["best"] is not None)
    assert some["best"]["seconds"] >= some["best"]["bound"] > 0
    assert some["best"]["method"]
    text = command("zoo", "best", "--split", "test", "--objective", "makespan").out
    assert "wavenet-2x18-training.p100x2.all" in text
    assert "zoo-best-1: 25 problems" in text


def test_the_command_makes_graphs_that_others_read(command, tmp_path):
    found = command("zoo", "generate", "--seed", 7, "--save", "made", "--json")
    assert found.code == 0, found.err
    assert found.document["graphs"][0]["digest"] == generated_graph(7).digest
    assert go_rl.load(tmp_path / "made" / "generated-2-7.npz").digest == generated_graph(7).digest
    assert command("zoo", "generate", "--count", 0).code == 2
