"""Pages: what is written, and the moves that were tried."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from page_parts import named_graph, planned, problem_on, zoo_plan

import go_rl.report.page.tried_moves as module
from go_rl.core import Objective, PlanError, Status
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import failed
from go_rl.objectives.kits import kit_of
from go_rl.report.page.document import ShownPlan
from go_rl.report.page.methods_file import read_methods
from go_rl.report.page.tried_moves import Hindrance, tried_moves
from go_rl.report.page.write_page import page_text
from go_rl.verify.rules import legal

VOID = {"meta", "br", "img", "input", "link", "hr"}
CHAIN = named_graph("enc/a", "enc/b", "c", "d")


class Outline(HTMLParser):
    """Elements that are open, all that were, and the content of the data element."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.seen and self.seen[-1][1].get("id") == "data" and self.open[-1] == "script":
            self.data += data


def shown_chain(graph=CHAIN, device=(0, 0, 1, 2)) -> ShownPlan:
    problem = problem_on(graph, "ring3", Objective.RING)
    return ShownPlan(problem, planned(problem, list(device)))


def read(page: str) -> Outline:
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    return outline


def test_a_page_is_one_file_that_asks_for_no_other():
    outline = read(page_text([shown_chain()]))
    for tag, attributes in outline.seen:
        assert tag not in ("link", "img", "iframe")
        assert "src" not in attributes
        assert "href" not in attributes
    policy = next(a["content"] for t, a in outline.seen if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_data_are_those_of_the_plan():
    shown = shown_chain()
    document = json.loads(read(page_text([shown])).data)
    plan = document["plans"][0]
    assert document["graph"]["names"] == ["enc/a", "enc/b", "c", "d", "named", "enc"]
    assert plan["device"] == [0, 0, 1, 2]
    assert plan["value"] == pytest.approx(shown.plan.value)
    assert plan["seconds"] == pytest.approx(shown.problem.seconds[0], rel=1e-4)
    assert plan["verdict"]["ok"]
    assert plan["moves"][0] == [[1, 0, "acyclic: its reader 'enc/b' is on chip 0"]]
    assert [load["operators"] for load in plan["loads"]] == [2, 1, 1]
    bars = plan["timetable"]
    assert bars["row"][:2] == [0, 0]
    assert bars["start"][1] == pytest.approx(shown.problem.seconds[0, 0], rel=1e-4)


@pytest.mark.parametrize("name", ["</script>", "<!-- <script>", "a\u2028b", "\x00", "ü€", '"\\'])
def test_hostile_names_stay_data(name):
    page = page_text([shown_chain(named_graph(name, "b", "c", "d"))])
    document = json.loads(read(page).data)
    assert name in document["graph"]["names"][0] or not name.isprintable()
    assert page.count("</script>") == 2


def test_a_failure_is_refused():
    shown = shown_chain()
    broken = replace(shown.plan, evaluation=failed(Status.INFEASIBLE, 3, "no room"))
    with pytest.raises(
        PlanError,
        match=r"^there is nothing to show of a plan that failed: No plan .* proved\. no room$",
    ):
        page_text([ShownPlan(shown.problem, broken)])


def test_an_illegal_plan_of_a_makespan_is_shown_without_a_timeline():
    problem, plan = zoo_plan("ncf", "p100x4", Objective.MAKESPAN)
    group = np.zeros(problem.graph.num_nodes, np.int64)
    broken = replace(plan, fusion_group=group, optimal=False)
    document = json.loads(read(page_text([ShownPlan(problem, broken)])).data)
    (shown,) = document["plans"]
    assert (shown["verdict"]["ok"], shown["timetable"]) == (False, None)
    assert shown["obstacle"].startswith("the plan breaks kernel-")
    assert shown["verdict"]["violations"][0] in shown["obstacle"]
    assert set(map(len, shown["moves"])) == {0}
    assert set(shown["slack"]) == {None}
    assert dict(shown["facts"])["busiest"] == "–"


def test_an_illegal_plan_of_a_ring_is_shown_with_its_verdict():
    shown = shown_chain()
    back = replace(shown.plan, device=np.array([1, 0, 1, 2], np.int16))
    (plan,) = json.loads(read(page_text([ShownPlan(shown.problem, back)])).data)["plans"]
    assert not plan["verdict"]["ok"]
    assert plan["verdict"]["text"] == "The plan breaks a static rule."
    assert (plan["obstacle"], len(plan["timetable"]["rows"])) == ("", 3)


def test_a_plan_of_another_graph_is_refused():
    other = shown_chain(named_graph("x", "y", "z"), (0, 0, 1))
    with pytest.raises(PlanError, match="is for another graph: its node 0 is 'x'"):
        page_text([shown_chain(), other])


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"bound": 1, "methods": [{}]}'])
def test_another_file_is_no_file_of_methods(content, tmp_path):
    (tmp_path / "methods.json").write_text(content)
    with pytest.raises(PlanError, match=r"methods\.json: not what go-rl optimize --out writes"):
        read_methods(tmp_path / "methods.json")


TRIED = named_graph("a", "b", "c", "d")


def reasons(problem, device):
    return [
        {move.device: (move.hindrance, move.reason) for move in moves}
        for moves in tried_moves(problem, planned(problem, device))
    ]


def test_order_keeps_operators_of_a_ring():
    problem = problem_on(TRIED, "ring3", Objective.RING)
    found = reasons(problem, [0, 0, 1, 1])
    assert found[0][1] == (Hindrance.RULE, "acyclic: its reader 'b' is on chip 0")
    assert found[3][0] == (Hindrance.RULE, "acyclic: its input 'c' is on chip 1")
    assert {*found[0]} == {1}  # there is no chip -1
    assert {*found[3]} == {0, 2}
    hindrance, reason = found[1][1]
    assert hindrance is Hindrance.LOAD
    assert reason.startswith("would raise T_max from ")


@pytest.mark.parametrize(
    ("name", "hardware", "objective"),
    [
        ("ncf", "ring4", Objective.RING),
        ("ncf", "p100x4", Objective.MAKESPAN),
        ("ncf", "ring4", Objective.LATENCY),
    ],
)
def test_every_move_is_as_the_checker_and_the_simulator_say(name, hardware, objective):
    problem, plan = zoo_plan(name, hardware, objective)
    workspace, tried = kit_of(problem).workspace(problem), 0
    for node, moves in enumerate(tried_moves(problem, plan)):
        for move in moves:
            if problem.graph.colocation[node] >= 0:
                continue
            device = plan.device.copy()
            device[node] = move.device
            scored = workspace.evaluate(Decisions(device[None]))
            broken = legal(problem, device, {})
            tried += 1
            if move.hindrance is Hindrance.RULE:
                assert broken
                assert move.reason.startswith(f"{broken[0].rule}") or len(broken) > 1
            elif move.hindrance is Hindrance.LOAD:
                assert not broken
                assert scored.seconds[0] > plan.value
            elif move.hindrance is Hindrance.NOTHING:
                assert not broken
                assert scored.seconds[0] <= plan.value * (1 + 1e-6)
    assert tried > problem.graph.num_nodes / 2


def test_colocated_operators_move_together():
    problem, plan = zoo_plan("ncf", "ring4", Objective.MAX_LOAD)
    together = np.full(problem.graph.num_nodes, -1, np.int32)
    together[:4] = 0
    problem = replace(problem, graph=replace(problem.graph, colocation=together))
    plan = planned(problem, [0] * problem.graph.num_nodes)
    moves = tried_moves(problem, plan)
    assert moves[0] == moves[1] == moves[2] == moves[3]
    assert all(move.hindrance is not Hindrance.RULE for move in moves[0])


def test_inputs_of_a_replayed_plan_run_nowhere():
    problem, plan = zoo_plan("resnet18", "p100x4", Objective.MAKESPAN)
    moves = tried_moves(problem, plan)
    assert all(not moves[n] for n in np.flatnonzero(problem.graph.is_fed))
    assert all(moves[n] for n in np.flatnonzero(~problem.graph.is_fed))


def test_of_a_large_graph_only_the_longest_are_tried(monkeypatch):
    problem, plan = zoo_plan("bert-tiny", "ring4", Objective.MAX_LOAD)
    size = problem.graph.num_nodes + problem.graph.num_edges
    monkeypatch.setattr(module, "MOST_PRICED", 10 * size)
    moves = tried_moves(problem, plan)
    tried = [n for n, each in enumerate(moves) for m in each if m.hindrance != Hindrance.UNKNOWN]
    assert len(tried) == 10
    shortest = min(problem.work[n] for n in tried)
    left = [n for n, each in enumerate(moves) for m in each if m.hindrance == Hindrance.UNKNOWN]
    assert max(problem.work[n] for n in left) <= shortest * (1 + 1e-9)
    assert moves[left[0]][-1].reason == "not tried: only the 10 moves of the longest operators are"
