"""``go-rl check`` of a plan: verdicts, and what they rest on."""

import json
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from profile_documents import chain_document, node_document

from go_rl.core import Plan, Status
from go_rl.core.evaluation import failed


@pytest.fixture
def plan(command, chain) -> Path:
    flags = ("--hardware", "ring3", "--method", "greedy", "--samples", 5, "--out", "planned")
    assert command("optimize", chain, *flags).code == 0
    return Path("planned/plan.json")


def save_symbolic(path: Path) -> None:
    """A row of four operators on a batch of any size."""
    names = ["x", "a", "b", "c", "y"]
    nodes = [helper.make_node("Relu", [u], [v]) for u, v in pairwise(names)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 64]) for n in "xy"]
    graph = helper.make_graph(nodes, "dyn", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, ir_version=9), path)


def test_check_accepts_what_partition_wrote(command, chain, plan):
    found = command("check", plan, chain)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("accepted: ")
    assert "0.002 s an iteration" in found.out


def test_check_rejects_with_a_line_for_each_violation(command, chain, plan):
    document = json.loads(plan.read_text())
    document["device"] = [1, 0, 0, 1, 2, 2]
    plan.write_text(json.dumps(document))
    found = command("check", plan, chain)
    assert found.code == 1
    first, *violations, following = found.out.splitlines()
    assert following.startswith(f"next: go-rl optimize {chain} ")
    assert first.startswith("rejected: ")
    assert any(line.startswith("acyclic: ") for line in violations)
    listed = command("check", plan, chain, "--json")
    assert (listed.code, listed.document["accepted"]) == (1, False)
    assert [v["rule"] for v in listed.document["violations"]] == [
        line.split(":")[0] for line in violations
    ]


def test_check_tells_false_numbers_from_broken_rules(command, chain, plan):
    document = json.loads(plan.read_text())
    plan.write_text(json.dumps(document | {"bound": 1.0, "gap": 0.0}))
    found = command("check", plan, chain)
    assert found.code == 1
    first, second, _ = found.out.splitlines()
    assert first.startswith("rejected: The plan is legal, but what it states is false.")
    assert second.startswith("bound: a lower bound of 1 s does not fit a plan of 0.002 s")
    listed = command("check", plan, chain, "--json").document
    assert (listed["accepted"], listed["legal"]) == (False, True)
    assert listed["status"] == "false-claims"


def test_check_says_a_next_command_that_can_be_typed(command, chain, plan):
    """A preset by its name; hardware of a user's file, whose place no plan knows, by the plan."""
    assert "--hardware ring3 " in command("check", plan, chain).out.splitlines()[-1]
    own = json.loads(command("hardware", "show", "ring3", "--json").out)
    for name in ("mine", "ring3"):
        own["name"], own["devices"][0]["peak_flops"] = name, 1e12
        Path("elsewhere.json").write_text(json.dumps(own))
        flags = ("--hardware", "elsewhere.json", "--method", "greedy", "--samples", 5)
        assert command("optimize", chain, *flags, "--out", f"of-{name}").code == 0
        following = command("check", f"of-{name}/plan.json", chain).out.splitlines()[-1]
        assert f"--hardware of-{name}/plan.json " in following
        Path("elsewhere.json").unlink()
        words = following.removeprefix("next: go-rl ").replace("--method all", "--method greedy")
        again = command(*shlex.split(words), "--samples", 2, "--out", "again")
        assert again.code == 0, again.err


def test_check_refuses_a_plan_for_another_graph(refused, plan, tmp_path):
    other = tmp_path / "other.json"
    nodes = [node_document(i, fpgaLatency=2.0) for i in range(6)]
    other.write_text(json.dumps(chain_document(nodes=nodes)))
    refused("check", plan, other, said="another graph")


def test_check_says_what_a_plan_reports_of_its_own_failure(command, chain, plan):
    detail = "node 3 alone needs 16384 bytes"
    found = Plan.load(plan)
    replace(found, evaluation=failed(Status.INFEASIBLE, 3, detail), bound=0.0, optimal=False).save(
        "failed.json"
    )
    found = command("check", "failed.json", chain)
    assert found.code == 1
    first, second, _ = found.out.splitlines()
    assert first.startswith("rejected: The plan itself reports a failure. ")
    assert second == detail
    listed = command("check", "failed.json", chain, "--json").document
    assert (listed["detail"], listed["legal"]) == (detail, False)
    shown = command("view", "failed.json", chain)
    assert (shown.code, detail in shown.err) == (2, True)
    assert shown.err.startswith("go-rl: failed.json: there is nothing to show of a plan that ")


def test_check_holds_a_plan_against_hardware_of_the_user(command, refused, chain, plan):
    found = command("check", plan, chain, "--hardware", "ring3")
    assert found.code == 0, found.err
    assert found.out.splitlines()[0] == (
        "accepted: The plan is legal and fits. Checked on ring3, 3 devices as --hardware has them; "
        "objective ring, rules default, cost profiled, memory without limit"
    )
    document = json.loads(plan.read_text())
    document["hardware"]["devices"][0]["memory_bytes"] *= 2
    plan.write_text(json.dumps(document))
    found = command("check", plan, chain)
    assert found.code == 0, found.err
    assert "3 devices as the plan describes them, which the preset of that name does " in found.out
    said = f"go-rl: {plan}: the plan is for other hardware: devices[0].memory_bytes of its 'ring3'"
    refused("check", plan, chain, "--hardware", "ring3", said=said)
    for other in ("ring4", "p100x2"):
        said = f"go-rl: {plan}: the plan is for other hardware: 'ring3', not '{other}'"
        refused("check", plan, chain, "--hardware", other, said=said)
    refused("check", plan, chain, "--hardware", "rin3", said="unknown hardware 'rin3'")
    assert command("check", plan, chain, "--hardware", plan).code == 0
    listed = command("check", plan, chain, "--hardware", plan, "--json").document
    assert listed["assumed"]["hardware_from"] == "--hardware"


def test_check_refuses_a_split_and_a_session_together(refused):
    words = ("check", "--split=2,2", "--ran", "profile.json", "m.onnx")
    refused(*words, said="--split and --ran exclude each other")


def test_a_plan_of_other_sizes_is_refused_with_its_own(command, refused, tmp_path):
    save_symbolic(tmp_path / "dyn.onnx")
    flags = ("--hardware", "ring2", "--method", "greedy", "--samples", 5, "--out", "sized")
    assert command("optimize", "dyn.onnx", "--dim", "batch=4", *flags).code == 0
    said = "go-rl: sized/plan.json: the plan is for another graph: "
    found = refused("check", "sized/plan.json", "dyn.onnx", "--dim", "batch=8", said=said)
    assert found.err.endswith("; the plan was made with batch=4\n")
    assert command("check", "sized/plan.json", "dyn.onnx", "--dim", "batch=4").code == 0
