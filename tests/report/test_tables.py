"""The table of methods, against rows worked out by hand."""

import math

import numpy as np
import pytest

from go_rl.compare.portfolio.method_rows import rows
from go_rl.core import (
    Evaluation,
    Objective,
    OpKind,
    Plan,
    Status,
    load_hardware,
    plan_for,
)
from go_rl.core.evaluation import failed
from go_rl.core.unit_text import percent, unit_for
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.report.tables import json_rows


def plan(optimizer: str, seconds: float, bound: float = 1e-3, **fields) -> Plan:
    builder = GraphBuilder("one")
    builder.add_node(Node("a", "MatMul", OpKind.MATMUL, flops=1e6))
    problem = make_problem(builder.build(), load_hardware("ring2"), ProblemOptions(Objective.RING))
    zeros = np.zeros(2)
    work = np.array([3.0, 1.0])
    evaluation = Evaluation(Status.OK, seconds, work, zeros, zeros, zeros, zeros, zeros)
    if not math.isfinite(seconds):
        evaluation = failed(Status.GAVE_UP, 2, "Nothing was found.")
    given = {"samples": 7, "wall_seconds": 0.5, "replicas": {}, **fields}
    return plan_for(
        problem, device=np.zeros(1, np.int16), evaluation=evaluation, bound=bound,
        optimizer=optimizer, seed=0, **given,
    )  # fmt: skip


def test_rows_by_hand():
    table = rows([plan("greedy", 4e-3), plan("dp", 1.25e-3), plan("random", math.inf)], 1e-3)
    greedy, dp, random = json_rows(table)
    assert greedy["improvement"] == 1.0
    assert greedy["gap"] == pytest.approx(3.0)
    assert dp == {
        "method": "dp", "value": 1.25e-3, "throughput": 800.0, "improvement": 3.2,
        "gap": pytest.approx(0.25), "effective_chips": pytest.approx(4 / 3**0.75),
        "samples": 7, "wall_seconds": 0.5, "status": "ok",
    }  # fmt: skip
    missing = {"value", "throughput", "improvement", "gap", "effective_chips"}
    assert {k for k, v in random.items() if v is None} == missing
    assert random["status"] == "gave-up"


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(2.0, "s"), (1e-3, "ms"), (5e-5, "µs"), (5e-9, "ns"), (1e-12, "ns"), (0.0, "ms")],
)
def test_units(seconds, unit):
    assert unit_for(seconds)[1] == unit


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (3.0, "300.0 %"),
        (10.0, "1000.0 %"),
        (10.1, "no useful bound"),
        (0.0123, "1.2 %"),
        (1.37e-4, "0.014 %"),
        (2e-6, "0.0002 %"),
        (0.0, "0.0 %"),
        (2.2e-16, "0.0 %"),
    ],
)
def test_gaps_in_words(ratio, text):
    assert percent(ratio) == text
