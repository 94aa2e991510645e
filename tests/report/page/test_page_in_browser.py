"""The page in headless Chromium: it draws, opens blocks, finds, colours and compares."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Browser, browser
from page_parts import named_graph, planned, problem_on, zoo_plan

from go_rl.core import Objective
from go_rl.report.page.document import ShownPlan
from go_rl.report.page.methods_file import method_runs
from go_rl.report.page.write_page import page_text

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
LONGEST = 5.0
"""Seconds to write a page, and to paint it."""


@pytest.fixture(scope="module")
def tab(tmp_path_factory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def used(tab, tmp_path) -> Callable[[str, str], Any]:
    """Open a page, run a script on it, and return what that returns; nothing may be said in the
    console."""

    def run(page: str, script: str) -> Any:
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        tab.faults.clear()
        tab.open(tmp_path / "page.html")
        found = tab.run(script)
        assert tab.faults == []
        return found

    return run


def bert_page() -> str:
    problem, plan = zoo_plan("bert-tiny", "ring4", Objective.RING)
    return page_text([ShownPlan(problem, plan, method_runs([plan], plan.bound))])


@pytest.mark.parametrize("count", [1, 600, 10_000])
def test_graphs_of_all_sizes_are_drawn_soon(count, used):
    graph = named_graph(*(f"layer{i // 50}/op{i}" for i in range(count)))
    problem = problem_on(graph, "ring4", Objective.RING)
    plan = planned(problem, [min(4 * i // count, 3) for i in range(count)])
    start = time.perf_counter()
    page = page_text([ShownPlan(problem, plan)])
    written = time.perf_counter()
    found = used(page, "return [shown.views[0].drawn, shown.views[0].width];")
    painted = time.perf_counter()
    assert found[0] >= 1
    assert found[1] > 500
    assert written - start < LONGEST
    assert painted - written < LONGEST


def test_a_click_opens_a_block_until_operators_show(used):
    found = used(
        bert_page(),
        """
      const view = shown.views[0], states = [];
      const node = view.graph.names.findIndex((name) => name.includes("attention"));
      for (let i = 0; i < 6 && view.shown(node) !== node; i++) {
        const block = view.shown(node);
        states.push(view.isOpen(block));
        clickAt(view.canvas, ...middle(view, block));
        await pause(600);
        states.push(view.isOpen(block));
      }
      clickAt(view.canvas, ...middle(view, node));
      await pause(100);
      return [states, view.selected === node, textOf(".details"), view.graph.names[node]];
    """,
    )
    states, is_selected, details, name = found
    assert states[:2] == [False, True]
    assert is_selected
    assert name in details
    assert "weights" in details
    assert "to chip" in details


def test_search_lists_and_goes_there(used):
    found = used(
        bert_page(),
        """
      const box = document.getElementById("search"), list = document.querySelector(".found");
      box.value = "ATTENTION";
      box.dispatchEvent(new Event("input"));
      const rows = list.querySelectorAll("div").length, said = list.lastChild.textContent;
      box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
      await pause(600);
      const view = shown.views[0], first = view.selected, isThere = view.shown(first) === first;
      box.value = "no such thing";
      box.dispatchEvent(new Event("input"));
      return [rows, said, view.graph.names[first], isThere, list.textContent];
    """,
    )
    rows, said, name, is_there, nothing = found
    assert said == f"{rows} found"
    assert rows > 10
    assert "attention" in name
    assert is_there
    assert nothing == "0 found"


def test_a_plan_that_cannot_be_replayed_is_drawn_with_the_reason(used):
    problem, plan = zoo_plan("ncf", "p100x4", Objective.MAKESPAN)
    broken = replace(plan, fusion_group=np.zeros(problem.graph.num_nodes, np.int64))
    found = used(
        page_text([ShownPlan(problem, broken)]),
        """
      shown.select(0);
      shown.colour("slack");
      await pause(50);
      return [shown.views[0].drawn, shown.times.length, document.body.textContent];
    """,
    )
    assert found[0] >= 1
    assert found[1] == 0
    assert "There is no timeline: the plan breaks kernel-" in found[2]


def test_hostile_names_are_text(used):
    graph = named_graph("</script><img src=x onerror=alert(1)>/a", "<!--", "b\u2028c", "\x00d")
    problem = problem_on(graph, "ring4", Objective.RING)
    found = used(
        page_text([ShownPlan(problem, planned(problem, [0] * 4))]),
        """
      shown.select(0);
      await pause(50);
      return [document.querySelectorAll("img").length, textOf(".details h3")];
    """,
    )
    assert found == [0, "</script><img src=x onerror=alert(1)>/a"]
