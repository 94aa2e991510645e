"""``go-rl optimize`` for every objective: documents, files, exit codes."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from go_rl.core import Plan, load_hardware
from go_rl.graphs.cutting.colocation import forward_homes, with_colocation
from go_rl.graphs.zoo import zoo_graph
from go_rl.report.plan_folder import FILES

COLUMNS = {
    "method", "value", "throughput", "improvement", "gap", "effective_chips",
    "samples", "wall_seconds", "status",
}  # fmt: skip
FEW = ("--samples", 20, "--seconds", 20)


def test_json_is_one_document_with_table_and_plan(command, chain):
    found = command("optimize", chain, "--hardware", "ring3", "--json", *FEW)
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
    found = command("optimize", chain, "--hardware", "ring3", "--method", "greedy", *FEW)
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
    flags = ("--objective", objective, "--json", *FEW)
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
    flags = ("--hardware", "tight.json", "--memory", "on", *FEW)
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


MODEL = "zoo:transformer-xl-2-layers-training"
QUICK = ("--samples", 2, "--method")


def test_the_folder_holds_plan_timeline_and_figures(command, tmp_path, drawn):
    found = command("optimize", MODEL, "--hardware", "p100x2", *QUICK, "expert", "--out", "here")
    assert found.code == 0, found.err
    folder = tmp_path / "here"
    trace = json.loads((folder / "trace.json").read_text())
    assert any(event["ph"] == "X" for event in trace["traceEvents"])
    assert (folder / "gantt.png").stat().st_size > 1_000
    plan = Plan.load(folder / "plan.json")
    assert plan.objective == "makespan"
    checked = command("check", folder / "plan.json", MODEL)
    assert checked.code == 0, checked.err
    assert f"an iteration, proven bound {plan.bound:.6g} s, gap" in checked.out
    assert 0.1 * plan.value < plan.bound < plan.value


def test_one_json_document_with_improvements_over_the_default(command):
    found = command("optimize", MODEL, "--hardware", "p100x2", *QUICK, "fusion-greedy", "--json")
    assert found.code == 0, found.err
    table, plan = found.document["table"], found.document["plan"]
    assert [row["method"] for row in table] == ["default", "one-device", "fusion-greedy"]
    assert table[1]["improvement"] == 1.0
    assert found.document["reference"] == "one-device"
    assert table[0]["improvement"] < 1.0
    assert plan["fusion_group"] is not None
    assert plan["priority"] is None


@pytest.mark.slow
def test_gradients_share_the_device_of_their_operators_and_the_checker_says_so(command, tmp_path):
    """Random plans put nearly every node by itself, unless it is bound."""
    found = command("optimize", MODEL, "--hardware", "p100x2", "--decide", "placement",
                    "--colocate", "gradients", *QUICK, "random", "--out", "here")  # fmt: skip
    assert found.code == 0, found.err
    path = tmp_path / "here" / "plan.json"
    plan, graph = Plan.load(path), zoo_graph(MODEL.removeprefix("zoo:"))
    assert plan.graph_hash == with_colocation(graph, "gradients").digest
    assert command("check", path, MODEL).code == 0
    home = forward_homes(graph)
    bound = np.flatnonzero(graph.is_backward & (home >= 0))
    moved = json.loads(path.read_text())
    moved["device"] = [1 - d if i == bound[0] else d for i, d in enumerate(moved["device"])]
    path.write_text(json.dumps(moved))
    assert command("check", path, MODEL).code != 0


def test_memory_that_no_placement_can_satisfy_names_the_tensors(command, tmp_path):
    document = load_hardware("p100x2").to_json()
    document["devices"][0]["memory_bytes"] = 1e6
    (tmp_path / "tiny.json").write_text(json.dumps(document))
    found = command("optimize", MODEL, "--hardware", "tiny.json", "--decide", "placement", *QUICK,
                    "expert", "--json")  # fmt: skip
    assert found.code == 3
    plan = found.document["plan"]
    assert plan["status"] == "infeasible"
    assert "alone needs" in plan["evaluation"]["detail"]


def test_a_search_that_gave_up_says_so_once_and_proposes_a_longer_one(command):
    words = "optimize zoo:gcn-16-layers --rules strict --hardware ring36 --all-chips"
    pinned = "--fixed GCN/gather.0=0 --out p"
    found = command(*words.split(), "--method", "greedy", "--samples", 1, *pinned.split())
    assert found.code == 3, found.err
    assert found.out.count("No legal plan was found") == 1
    assert found.out.splitlines()[-1] == (
        f"next: go-rl {words} --method greedy --samples 2 {pinned}"
    )
