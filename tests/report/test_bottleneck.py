"""The busiest device or link of a plan, by hand."""

import numpy as np
import pytest

from go_rl.core import Evaluation, Objective, OpKind, Plan, Problem, Status, load_hardware, plan_for
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.report.bottleneck import bottleneck


def chain(objective: Objective, hardware: str) -> Problem:
    """x → a (3 GFLOP, 40 kB) → b (1 GFLOP, 8 kB)."""
    builder = GraphBuilder("chain")
    builder.add_node(Node("a", "MatMul", OpKind.MATMUL, flops=3e9, output_bytes=4e4))
    builder.add_node(Node("b", "Conv", OpKind.MATMUL, flops=1e9, output_bytes=8e3))
    builder.add_edge(0, 1, 4e4)
    return make_problem(builder.build(), load_hardware(hardware), ProblemOptions(objective))


def planned(problem: Problem, device: list[int], seconds: float, loads, links) -> Plan:
    work, traffic = np.array(loads), np.array(links)
    evaluation = Evaluation(Status.OK, seconds, work, traffic, 0 * traffic, *([0 * work] * 3))
    return plan_for(problem, device=np.array(device, np.int16), evaluation=evaluation, bound=0.0,
                    optimizer="dp", seed=0, samples=1, wall_seconds=0.0, replicas={})  # fmt: skip


def test_a_chip_with_its_operators():
    problem = chain(Objective.RING, "ring2")
    found = bottleneck(problem, planned(problem, [0, 0], 4.0, [4.0, 0.0], [0.0, 0.0]))
    assert found is not None
    total = problem.seconds[0].sum()
    assert (found.what, found.share, found.longest) == ("chip 0", 1.0, "a")
    assert found.amount == pytest.approx(problem.seconds[0, 0] / total)
    assert [name for name, _ in found.operators] == ["MatMul", "Conv"]
    assert found.sentence.startswith("busiest: chip 0, 100 % of the iteration: 7")
    assert found.sentence.endswith(" % Conv; longest operator a, 75 %")


def test_a_link_with_its_largest_tensor():
    problem = chain(Objective.RING, "ring2")
    found = bottleneck(problem, planned(problem, [0, 1], 5.0, [3.0, 1.0], [5.0, 0.0]))
    assert found is not None
    assert found.sentence == (
        "busiest: link 0 → 1, 100 % of the iteration; largest tensor there: a, 40 kB"
    )
    assert found.to_json()["longest"] == "a"
