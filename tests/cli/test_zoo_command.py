"""``go-rl zoo``, and graphs of the zoo as models."""

from go_rl.compare import submitted_plans
from go_rl.graphs.zoo import zoo_names


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
