"""``go-rl optimize`` for rings and host objectives: documents, files, exit codes."""

import csv
import json
import math
from pathlib import Path

import pytest

from go_rl.core import Plan, load_hardware
from go_rl.report.plan_folder import FILES

COLUMNS = {
    "method", "value", "throughput", "improvement", "gap", "effective_chips",
    "samples", "wall_seconds", "status",
}  # fmt: skip
QUICK = ("--samples", 20, "--seconds", 20)


def test_json_is_one_document_with_table_and_plan(command, chain):
    found = command("optimize", chain, "--hardware", "ring3", "--json", *QUICK)
    assert found.code == 0, found.err
    table, plan = found.document["table"], found.document["plan"]
    assert {*found.document} == {"table", "reference", "bottleneck", "plan"}
    assert found.document["reference"] == "greedy"
    assert all({*row} == COLUMNS for row in table)
    for row in table:
        numbers = [v for k, v in row.items() if k not in ("method", "status")]
        assert all(v is None or math.isfinite(v) for v in numbers)
    heuristic = table[0]
    assert (heuristic["method"], heuristic["improvement"]) == ("greedy", 1.0)
    best = min(row["value"] for row in table if row["value"])
    assert plan["value"] == pytest.approx(best)
    # Six operators of 1 ms on three chips, no traffic: two each.
    assert plan["value"] == pytest.approx(2e-3)
    assert plan["device"] == [0, 0, 1, 1, 2, 2]
    assert plan["nodes"] == [0, 1, 2, 3, 4, 5]


def test_the_folder_holds_plan_tables_and_figures(command, chain, tmp_path, drawn):
    found = command("optimize", chain, "--hardware", "ring3", "--method", "greedy", *QUICK)
    assert found.code == 0, found.err
    folder = tmp_path / "out" / "chain"
    timeline = {"trace.json", "gantt.svg", "gantt.png"}  # of makespan
    assert {p.name for p in folder.iterdir()} == {*FILES} - timeline - {"page.html"}
    assert [p.name for p in folder.parent.iterdir()] == ["chain"]
    for line in ("chain on ring3", "greedy", "devices used: 3 of 3", "is legal and fits"):
        assert line in found.out
    plan = Plan.load(folder / "plan.json")
    with (folder / "table.csv").open() as file:
        row = next(csv.DictReader(file))
    assert float(row["value"]) == plan.value
    assert (folder / "table.md").read_text().startswith("| method | T_max [ms] |")
    assert b"<svg" in (folder / "loads.svg").read_bytes()
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("objective", ["max-load", "latency"])
def test_a_profile_runs_on_its_own_hardware(command, chain, objective):
    flags = ("--objective", objective, "--json", *QUICK)
    found = command("optimize", chain, *flags)
    assert found.code == 0, found.err
    plan = found.document["plan"]
    assert plan["hardware"]["name"] == "file"
    assert plan["objective"] == objective
    assert max(plan["device"]) <= 2
    assert command("optimize", chain, "--hardware", "file", *flags).document["plan"]["value"] == (
        pytest.approx(plan["value"])
    )


def test_no_plan_is_told_and_has_exit_code_3(command, chain):
    # Six operators of 10 bytes, and one chip of 20.
    hardware = load_hardware("ring1").to_json()
    hardware["devices"][0]["memory_bytes"] = 20.0
    Path("tight.json").write_text(json.dumps(hardware))
    flags = ("--hardware", "tight.json", "--memory", "on", *QUICK)
    found = command("optimize", chain, "--json", *flags)
    assert found.code == 3, found.err
    plan, row = found.document["plan"], found.document["table"][0]
    assert (plan["status"], plan["value"]) == ("infeasible", None)
    assert (row["status"], row["improvement"], row["gap"]) == ("infeasible", None, None)
    shown = command("optimize", chain, "--out", "there", *flags)
    assert shown.code == 3
    assert "No plan obeys the rules: this was proved." in shown.out
    assert not Path("there/loads.svg").exists()
    assert command("check", "there/plan.json", chain).code == 1
