"""The Python twin of the command line."""

import inspect
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from costs.kernels.kernels import weights
from small_graphs import graph_of, row_of

import go_rl
from go_rl.api.options import OptimizeOptions, options_from
from go_rl.api.problem import fixed_nodes, problem_for, read_pins
from go_rl.core import (
    CheckpointError,
    GoRLError,
    OpGraph,
    OpKind,
    PlanError,
    ProblemError,
    load_hardware,
)
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers import save_graph
from go_rl.graphs.readers.graph_builder import Node
from go_rl.verify.check_plan import check_plan

QUICK = {"method": "greedy", "samples": 10}


@pytest.fixture
def graph() -> OpGraph:
    """Four equal multiplications in a row, with small tensors between them."""
    node = Node("", "MatMul", OpKind.MATMUL, flops=1e9, output_bytes=8.0)
    return row_of((replace(node, name=f"m{i}", is_output=i == 3) for i in range(4)), 8.0)


def test_importing_the_package_imports_nothing_heavy():
    heavy = "{'jax', 'numba', 'numpy', 'onnx', 'ortools', 'matplotlib', 'tyro'}"
    program = f"import sys, go_rl; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_command_line_is_parsed_without_jax():
    program = "import sys, go_rl.cli.main as m; m.main(['--version']); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_optimize_a_graph_and_check_the_plan(graph, tmp_path):
    said = []
    result = go_rl.optimize(graph, "ring2", report=said.append, **QUICK)
    assert result.best.device.tolist() == [0, 0, 1, 1]
    assert said
    assert go_rl.check(result.best, graph).ok
    assert go_rl.check(result.best, result.problem).ok
    result.best.save(tmp_path / "plan.json")
    save_graph(graph, tmp_path / "chain.npz")
    assert go_rl.check(tmp_path / "plan.json", tmp_path / "chain.npz").ok


def test_fixed_nodes_stay_where_they_are(graph):
    result = go_rl.optimize(graph, "ring3", fixed={"m0": 0, "m1": 1, "m2": 1, "m3": 1}, **QUICK)
    assert result.best.device.tolist() == [0, 1, 1, 1]
    with pytest.raises(ProblemError, match="fixed names 'm9', but 'chain' has no node"):
        go_rl.optimize(graph, fixed={"m9": 0}, **QUICK)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"samples": "5"}, "optimize: samples must be a whole number or None, not '5'"),
        ({"seconds": "5"}, "optimize: seconds must be a number or None, not '5'"),
        ({"seed": "a"}, "optimize: seed must be a whole number, not 'a'"),
        ({"seed": True}, "optimize: seed must be a whole number, not True"),
        ({"all_chips": 1}, "optimize: all_chips must be True or False, not 1"),
        ({"rules": 5}, "optimize: rules must be a text, not 5"),
        ({"objectiv": "ring"}, "no option 'objectiv'; did you mean 'objective'"),
        ({"cost": len}, "cost must be one of auto, .* not <built-in function len>"),
        ({"cost": None}, "cost must be one of auto, .* not None"),
    ],
)
def test_options_of_another_type_are_refused(given, message):
    with pytest.raises(GoRLError, match=message):
        options_from(OptimizeOptions, given, "optimize")


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"m0": "1"}, "the device of 'm0' must be an index >= 0, not '1'"),
        ({"m0": -1}, "the device of 'm0' must be an index >= 0, not -1"),
        ({"m0": True}, "the device of 'm0' must be an index >= 0, not True"),
        (["m0"], "fixed must be devices by node name"),
        ({("m0",): 1}, r"fixed names \('m0',\), but"),
        ({"n*": 1}, r"fixed names 'n\*', but '\w+' has no node that matches"),
        ({"m*": 0, "*": 1}, r"fixed names 'm0' twice: 'm\*' on 0, and '\*' on 1; name one"),
    ],
)
def test_pins_of_another_type_are_refused(graph, fixed, message):
    with pytest.raises(ProblemError, match=message):
        inspect.unwrap(fixed_nodes)(graph, fixed)


@pytest.mark.parametrize(
    ("words", "pins"),
    [
        (["m0=1"], {0: 1}),
        (["m*=1"], {0: 1, 1: 1, 2: 1, 3: 1}),
        (["m[01]=1", "*3=0"], {0: 1, 1: 1, 3: 0}),
        (["m0=0", "m*=1"], {0: 0, 1: 1, 2: 1, 3: 1}),
        (["m0=0", "m0=0", "m?=0"], {0: 0, 1: 0, 2: 0, 3: 0}),
        ([], {}),
    ],
)
def test_pins_are_names_or_patterns(graph, words, pins):
    assert fixed_nodes(graph, read_pins(words)) == pins


@pytest.mark.parametrize("word", ["m0", "m0=", "=1", "m0=a", "m0=-1", "m0=1.5", "m0=" + "1" * 5000])
def test_a_pin_without_a_device_is_refused(word):
    with pytest.raises(ProblemError, match="such as 'encoder/\\*=0'"):
        read_pins([word])


def test_the_problem_of_a_plan_is_the_problem_it_was_made_for(graph):
    options = OptimizeOptions(rules="strict", hardware="ring4", all_chips=True, memory=False)
    problem = problem_for(graph, options)
    plan = go_rl.optimize(
        graph, "ring4", memory=False, rules="strict", all_chips=True, **QUICK
    ).best
    again = go_rl.problem_of(plan, graph)
    assert (again.rules, again.memory, again.all_chips) == (problem.rules, False, True)
    assert again.hardware == problem.hardware
    np.testing.assert_array_equal(again.seconds, problem.seconds)


def test_a_plan_made_without_colocation_is_checked_without(graph):
    coloured = replace(graph, colocation=np.zeros(4, np.int32))
    made = go_rl.optimize(graph, "ring2", **QUICK).best
    free = make_problem(coloured, load_hardware("ring2"), ProblemOptions(colocation="none"))
    plan = replace(made, graph_hash=free.graph.digest)
    assert check_plan(plan, free).ok
    assert go_rl.check(plan, coloured).ok


def test_a_plan_with_unknown_costs_is_refused(graph):
    plan = replace(go_rl.optimize(graph, "ring2", **QUICK).best, cost_model="analytic")
    with pytest.raises(PlanError, match=r"cost_model is 'analytic'; did you mean 'analytical'\?"):
        go_rl.problem_of(plan, graph)


def test_plans_by_a_learned_model_are_checked_by_the_same(tmp_path):
    path = tmp_path / "w.npz"
    weights().save(path)
    graph = go_rl.trace(lambda x, w: (x @ w) @ w, *np.ones((2, 8, 8), np.float32))
    best = go_rl.optimize(graph, "cpu-1-ring2", cost=f"learned:{path}", **QUICK).best
    assert best.cost_model == f"learned:{path}"
    assert go_rl.check(best, graph).ok
    assert any("predicted by" in note for note in best.notes)
    path.unlink()
    with pytest.raises(CheckpointError, match="no such file"):
        go_rl.check(best, graph)


def test_trace_a_function():
    def net(x):
        return (x @ x).sum()

    graph = go_rl.trace(net, np.ones((4, 4), np.float32))
    assert graph.name == "net"
    assert "dot_general" in graph.op_type
    result = go_rl.optimize(graph, "ring2", **QUICK)
    assert go_rl.check(result.best, graph).ok


def problem_of_kind(kind: str) -> OpGraph:
    """A graph of one node: of inference, of training, or a profile with or without hardware."""
    meta = {"accelerators": 2, "memory_bytes": 9.0} if kind == "with hardware" else {}
    profile = kind in ("with hardware", "profile")
    node = Node("a", "Op", OpKind.OTHER, flops=0.0 if profile else 1.0, output_bytes=1.0,
                is_backward=kind == "training", seconds={"accelerator": 1.0} if profile else {},
                is_output=True)  # fmt: skip
    return graph_of([node], name=kind.replace(" ", "-"), meta=meta)


@pytest.mark.parametrize(
    ("kind", "hardware", "objective", "wanted"),
    [
        ("inference", None, None, ("ring", "ring36")),
        ("inference", None, "makespan", ("makespan", "p100x4")),
        ("inference", None, "max-load", ("max-load", "ring36")),
        ("inference", "a100x2", None, ("makespan", "a100x2")),
        ("inference", "ring2", None, ("ring", "ring2")),
        ("inference", "ring2", "latency", ("latency", "ring2")),
        ("training", None, None, ("makespan", "p100x4")),
        ("training", None, "max-load", ("max-load", "ring36")),
        ("profile", None, None, ("max-load", "ring36")),
        ("with hardware", None, None, ("max-load", "file")),
        ("with hardware", None, "latency", ("latency", "file")),
        ("with hardware", None, "ring", ("ring", "ring36")),
        ("with hardware", "file", None, ("max-load", "file")),
        ("with hardware", "ring2", None, ("ring", "ring2")),
        ("with hardware", "p100x2", None, ("max-load", "p100x2")),
    ],
)
def test_objective_and_hardware_by_default(kind, hardware, objective, wanted):
    graph = problem_of_kind(kind)
    problem = problem_for(graph, OptimizeOptions(objective, hardware=hardware))
    assert (problem.objective, problem.hardware.name) == wanted


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        ("max-load", {"rules": "strict"}, "rules has no meaning for objective max-load, only for"),
        ("latency", {"all_chips": True}, "all_chips has no meaning for objective latency"),
        (
            "max-load",
            {"weights": "dispatch-2.5"},
            "weights has no meaning .* only for ring, makespan",
        ),
        ("max-load", {"finetune": 5}, "finetune has no meaning for objective max-load"),
        ("makespan", {"expert": "e.json"}, "only for ring, max-load, latency"),
        ("ring", {"decide": "fusion"}, "objective ring decides placement only, not fusion"),
    ],
)
def test_options_without_meaning_for_the_objective_are_refused(graph, objective, options, message):
    with pytest.raises(GoRLError, match=message):
        go_rl.optimize(graph, objective=objective, **options)
    placed = problem_for(graph, OptimizeOptions("ring", "placement"))
    assert placed.objective == "ring"
