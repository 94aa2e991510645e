"""``go-rl optimize`` for the makespan objective: documents, files, exit codes, bad input."""

import json

import numpy as np
import pytest

from go_rl.core import Plan, load_hardware
from go_rl.graphs.cutting.colocation import forward_homes, with_colocation
from go_rl.graphs.zoo import zoo_graph

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
