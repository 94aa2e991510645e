"""The page as a file: valid HTML, safe data, clear refusals."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from page_parts import named_graph, planned, problem_on

from go_rl.core import Objective, PlanError, Status
from go_rl.core.evaluation import failed
from go_rl.report.page.document import ShownPlan
from go_rl.report.page.methods_file import read_methods
from go_rl.report.page.write_page import page_text

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
        PlanError, match=r"^there is nothing to show of a plan that failed: No plan"
    ):
        page_text([ShownPlan(shown.problem, broken)])


def test_a_plan_of_another_graph_is_refused():
    other = shown_chain(named_graph("x", "y", "z"), (0, 0, 1))
    with pytest.raises(PlanError, match="is for another graph: its node 0 is 'x'"):
        page_text([shown_chain(), other])


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"bound": 1, "methods": [{}]}'])
def test_another_file_is_no_file_of_methods(content, tmp_path):
    (tmp_path / "methods.json").write_text(content)
    with pytest.raises(PlanError, match=r"methods\.json: not what go-rl optimize --out writes"):
        read_methods(tmp_path / "methods.json")
