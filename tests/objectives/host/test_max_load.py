"""Maximum load and latency against their twins; bounds of maximum load."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference.boxed_problems import random_devices, random_problem
from reference.host_objectives import latency, max_load, optimum
from reference.problem_with import problem_with
from small_graphs import graph_of
from tied_weights import tied

from go_rl.core import (
    FREE,
    Device,
    Hardware,
    Links,
    Objective,
    OpKind,
    Problem,
    ProblemError,
    Status,
    Topology,
)
from go_rl.core.evaluation import STATUS_CODES
from go_rl.costs.models import ProblemOptions, file_hardware, make_problem
from go_rl.graphs.readers import load
from go_rl.graphs.readers.graph_builder import Node
from go_rl.objectives.host.hypergraph import contract_problem
from go_rl.objectives.host.max_load_cut_bound import fractional_knapsack
from go_rl.objectives.host.methods.max_load_dp import assignment_value
from go_rl.objectives.host.methods.max_load_exact import solve_exactly
from go_rl.objectives.host.simulate.latency import evaluate_latency, latency_batch
from go_rl.objectives.host.simulate.max_load import evaluate_max_load, max_load_batch

DATA = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[3] / "../shared/data"))
GRAPHS = DATA / "dnn-partitioning"
TILE = Device("tile", 1.0, 10.0, 1.0)
CPU = Device("cpu", 1.0, 1.0, 1.0, is_cpu=True)


def diamond(**fields) -> Problem:
    """a feeds b and c, both feed d; a's output costs 2 to move, the others' 1."""
    nodes = (Node(name, "Op", OpKind.OTHER) for name in "abcd")
    graph = graph_of(nodes, [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)], "diamond")
    hardware = Hardware("two and a host", (TILE, TILE, CPU), Links(Topology.FULL, 1.0))
    seconds = np.array([[4.0, 5.0, 6.0, 7.0], [40.0, 50.0, 60.0, np.inf]])
    values = {
        "weight_bytes": np.array([4.0, 4.0, 4.0, 2.0]), "edge_bytes": np.zeros(4),
        "transfer_seconds": np.array([2.0, 1.0, 1.0, 1.0]), **fields,
    }  # fmt: skip
    return problem_with(graph, hardware, Objective.MAX_LOAD, seconds, **values)


def devices(*plan: int) -> np.ndarray:
    return np.array(plan, np.int16)


@pytest.mark.parametrize(
    ("plan", "fields", "status", "words"),
    [
        ((0, 0, 0, 1), {}, Status.OUT_OF_MEMORY, "device 0 holds 12 bytes"),
        ((0, 0, 1, 2), {}, Status.UNSUPPORTED, "'d' is on device 2"),
        ((0, 0, 1, 3), {}, Status.ILLEGAL, "'d' is on device 3"),
        ((0, 0, 1, 1), {"fixed": {1: 1}}, Status.ILLEGAL, "'b' is fixed to device 1"),
    ],
)
def test_failures_say_what_is_wrong(plan, fields, status, words):
    evaluation = evaluate_max_load(diamond(**fields), devices(*plan))
    assert evaluation.status is status
    assert words in evaluation.detail
    assert evaluation.seconds == float("inf")


def test_tied_weights_are_told_once_a_device():
    """a, b and d read the same 4 bytes; c has its own."""
    problem = diamond(memory=False, weight_bytes=np.array([4.0, 4.0, 4.0, 4.0]))
    problem = tied(problem, [7, 7, FREE, 7])
    evaluation = evaluate_max_load(problem, devices(0, 0, 0, 1))
    assert evaluation.weight_bytes.tolist() == [8.0, 4.0, 0.0]


def test_colocated_nodes_must_share_a_device():
    problem = diamond()
    together = replace(problem.graph, colocation=np.array([3, FREE, 3, FREE], np.int32))
    problem = replace(problem, graph=together)
    assert evaluate_max_load(problem, devices(0, 1, 1, 1)).status is Status.ILLEGAL
    assert evaluate_max_load(problem, devices(0, 1, 0, 1)).status is Status.OK


def test_a_plan_of_the_wrong_length_is_an_error():
    with pytest.raises(ProblemError, match="has 3 entries a plan; graph 'diamond' has 4 nodes"):
        evaluate_max_load(diamond(), devices(0, 0, 1))


KERNELS = {
    Objective.MAX_LOAD: (max_load_batch, evaluate_max_load, max_load),
    Objective.LATENCY: (latency_batch, evaluate_latency, latency),
}
"""The kernel of many plans, the evaluation of one, and their twin."""


@pytest.mark.parametrize("objective", KERNELS)
def test_the_kernel_agrees_with_the_twin(objective):
    batch, evaluate, twin = KERNELS[objective]
    seen = Counter()
    for seed in range(36):
        problem = random_problem(seed, objective, 1 + seed % 9, 1 + seed % 4)
        plans = random_devices(seed, problem, 12)
        values, codes = batch(problem, plans)
        for plan, value, code in zip(plans, values, codes, strict=True):
            expected, status = twin(problem, plan)
            assert STATUS_CODES[code] is status
            assert value == pytest.approx(expected, rel=1e-12)
            single = evaluate(problem, plan)
            assert single.status is status
            assert single.seconds == value
            seen[status] += 1
    wanted = (Status.OK, Status.ILLEGAL, Status.UNSUPPORTED, Status.OUT_OF_MEMORY)
    assert min(seen[s] for s in wanted) >= 8


ONE_DEVICE = {
    "layers/bert24_inference": 92.406,
    "layers/gnmt_inference": 182.563,
    "layers/inceptionv3_training": 710.738,
    "layers/resnet50_inference": 201.45,
    "layers/resnet50_training": 462.381,
    "operators/bert_l-3_inference": 49.3526,
    "operators/bert_l-3_training": 122.987,
    "operators/bert_l-6_inference": 77.4615,
    "operators/bert_L-12_training": 1891.74,
    "operators/resnet50_inference": 325.132,
}


def published(path: str) -> Problem:
    file = GRAPHS / "throughput" / f"{path}.json"
    if not file.exists():
        pytest.skip(f"{file} is absent; set GO_RL_DATA to the folder with dnn-partitioning")
    graph = load(file)
    hardware = file_hardware(graph)
    assert hardware is not None
    return make_problem(graph, hardware, ProblemOptions(objective=Objective.MAX_LOAD, memory=False))


@pytest.mark.parametrize("path", ONE_DEVICE)
def test_one_accelerator_costs_what_the_authors_program_says(path):
    problem = published(path)
    value = evaluate_max_load(problem, np.zeros(problem.graph.num_nodes, np.int16))
    assert float(f"{1e3 * value.seconds:.6g}") == ONE_DEVICE[path]


UNLIMITED = 60.0


@pytest.mark.parametrize("seed", range(200, 206))
def test_cp_sat_proves_the_optimum(seed):
    problem = random_problem(seed, Objective.MAX_LOAD, 2 + seed % 5, 1 + seed % 3)
    best = optimum(problem, max_load)
    if np.isinf(best):
        return
    contraction = contract_problem(problem)
    anything = np.zeros(len(contraction.hypergraph.size), np.int16)
    bound, device = solve_exactly(contraction, 0.0, (1.5 * best, anything), UNLIMITED, 1)
    assert bound == pytest.approx(best, rel=1e-5)
    assert bound <= best * (1 + 1e-9)
    assert device is not None
    assert assignment_value(contraction, device) == pytest.approx(best)


def test_the_knapsack_takes_the_best_rate_first():
    value, price = np.array([6.0, 10.0, 4.0, 7.0]), np.array([2.0, 5.0, 0.0, np.inf])
    assert fractional_knapsack(value, price, 4.5) == pytest.approx(4 + 6 + 10 * 2.5 / 5)
    assert fractional_knapsack(value, price, -1.0) == pytest.approx(4.0)
