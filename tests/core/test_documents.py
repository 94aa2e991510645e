"""What docs/ promises: its JSON example, its checker, and complete tables."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_problems import build_plan, build_problem, ring_of

from go_rl.core import RULE_SETS, Hardware, Topology, load_hardware
from go_rl.verify.rules import FORM_RULES, RULES, legal

DOCS = Path(__file__).parents[2] / "docs"


def block(document: str, language: str) -> str:
    text = (DOCS / document).read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def rows(document: str) -> str:
    lines = (DOCS / document).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.split("|")[1] for line in lines if line.startswith("|"))


def test_the_package_example_is_a_package():
    example = Hardware.from_json(json.loads(block("hardware.md", "json")))
    assert (example.num_devices, example.links.topology) == (8, Topology.RING)


def test_every_field_of_a_plan_is_documented():
    plan = build_plan(build_problem("ab", [], ring_of(2)), [0, 1])
    listed = rows("plan.md")
    document = plan.to_json()
    for name in [*document, *document["evaluation"]]:
        assert f"`{name}`" in listed


def test_every_field_of_a_package_is_documented():
    listed = rows("hardware.md")
    names = [*load_hardware("ring2").to_json(), *load_hardware("ring2").to_json()["devices"][0]]
    for name in set(names) - {"links"}:
        assert f"`{name}`" in listed


def test_every_rule_is_documented():
    text = (DOCS / "objectives.md").read_text(encoding="utf-8")
    for name in [*(rule.name for rule in FORM_RULES + RULES), *RULE_SETS]:
        assert f"`{name}`" in text


@pytest.mark.parametrize(
    ("rules", "device", "replicas", "all_chips", "said"),
    [
        ("strict", [0, 0, 1], {}, False, "legal"),
        ("strict", [0, 1, 2], {}, False, "triangle over chips 0 and 2"),
        ("relay", [0, 1, 2], {}, False, "legal"),
        ("replicate", [0, 1, 2], {0: (2,)}, False, "legal"),
        ("strict", [0, 1, 1], {0: (1,)}, False, "copies are not allowed"),
        ("relay", [0, 2, 2], {}, False, "chip 1 is skipped"),
        ("relay", [0, 0, 1], {}, True, "chip 2 is skipped"),
        ("relay", [1, 0, 2], {}, False, "a (chip 1) -> b (chip 0) goes back"),
    ],
)
def test_the_outside_checker_agrees(rules, device, replicas, all_chips, said, tmp_path):
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    seconds = {"seconds": {"a": 1e-4}}
    problem = build_problem("abc", edges, ring_of(3), rules, seconds, all_chips=all_chips)
    build_plan(problem, device, replicas).save(tmp_path / "plan.json")
    graph = {"edges": [{"source": u, "target": v} for u, v in edges]}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    (tmp_path / "checker.py").write_text(block("plan.md", "python"))
    run = subprocess.run(
        [sys.executable, "checker.py", "plan.json", "graph.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.splitlines() == [said]
    ours = legal(problem, np.array(device), replicas)
    assert (run.returncode == 0) == (ours == ())
