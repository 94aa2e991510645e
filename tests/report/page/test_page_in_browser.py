"""The page in headless Chromium: it draws, opens blocks, finds, colours and compares."""

import time
from collections.abc import Callable, Iterator
from typing import Any

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


def test_colours_zoom_and_hover(used):
    found = used(
        bert_page(),
        """
      const view = shown.views[0], canvas = view.canvas, painted = [];
      for (const mode of ["device", "seconds", "slack", "memory"]) {
        document.querySelector(`button[data-mode=${mode}]`).click();
        await pause(60);
        painted.push(canvas.toDataURL().length);
      }
      const before = shown.camera.scale;
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -400, cancelable: true }));
      const after = shown.camera.scale;
      await pause(60);
      const item = view.graph.children[0].find((i) => view.isVisible(view.screenBox(i)));
      mouse(canvas, "pointermove", ...middle(view, item));
      const tip = document.getElementById("tip");
      return [painted, after / before, tip.style.display, tip.textContent];
    """,
    )
    painted, zoomed, display, tip = found
    assert len({*painted}) == 4
    assert zoomed == pytest.approx(1.822, rel=0.01)
    assert display == "block"
    assert "costs" in tip


def test_two_plans_side_by_side(used):
    problem, plan = zoo_plan("bert-tiny", "ring4", Objective.RING)
    other = planned(problem, [0] * len(plan.nodes))
    found = used(
        page_text([ShownPlan(problem, plan), ShownPlan(problem, other)]),
        """
      document.querySelector("button[data-mode=moved]").click();
      await pause(60);
      shown.camera.zoom(2, 100, 100);
      await pause(60);
      const titles = document.querySelectorAll(".view b").length;
      return [shown.views.map((view) => view.screenBox(0)), textOf(".legend"), titles];
    """,
    )
    (left, right), legend, titles = found
    assert left == pytest.approx(right)
    moved = int((plan.device != other.device).sum())
    assert legend == f"on another device in plan B: {moved:,} operators"
    assert titles == 2


def test_a_timeline_selects_operators(used):
    problem, plan = zoo_plan("resnet18", "p100x4", Objective.MAKESPAN)
    found = used(
        page_text([ShownPlan(problem, plan)]),
        """
      const view = shown.times[0], times = view.times;
      const bar = times.seconds.indexOf(Math.max(...times.seconds));
      const x = view.toX(times.start[bar] + times.seconds[bar] / 2), y = times.row[bar] * 20 + 10;
      clickAt(view.canvas, x, y);
      await pause(500);
      return [shown.selected, times.node[bar], view.at(x, y) === bar];
    """,
    )
    selected, node, is_there = found
    assert selected == node
    assert is_there


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
