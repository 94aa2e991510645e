"""Max-load pricing: hand-computed loads, the twin, and the authors' own figures."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference.boxed_problems import random_devices, random_problem
from reference.max_load import max_load
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
    rule_set,
)
from go_rl.core.evaluation import STATUS_CODES
from go_rl.costs.models import ProblemOptions, file_hardware, make_problem
from go_rl.graphs.readers import load
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.objectives.host.simulate.max_load import evaluate_max_load, max_load_batch

DATA = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[3] / "../shared/data"))
GRAPHS = DATA / "dnn-partitioning"
TILE = Device("tile", 1.0, 10.0, 1.0)
CPU = Device("cpu", 1.0, 1.0, 1.0, is_cpu=True)


def diamond(**fields) -> Problem:
    """a feeds b and c, both feed d; a's output costs 2 to move, the others' 1."""
    builder = GraphBuilder("diamond")
    for name in "abcd":
        builder.add_node(Node(name, "Op", OpKind.OTHER))
    for u, v in ((0, 1), (0, 2), (1, 3), (2, 3)):
        builder.add_edge(u, v, 1.0)
    hardware = Hardware("two and a host", (TILE, TILE, CPU), Links(Topology.FULL, 1.0))
    values = {
        "seconds": np.array([[4.0, 5.0, 6.0, 7.0], [40.0, 50.0, 60.0, np.inf]]),
        "weight_bytes": np.array([4.0, 4.0, 4.0, 2.0]),
        "transfer_seconds": np.array([2.0, 1.0, 1.0, 1.0]),
        **fields,
    }
    return Problem(
        graph=builder.build(),
        hardware=hardware,
        objective=Objective.MAX_LOAD,
        rules=rule_set("default"),
        cost_model="profiled",
        output_bytes=np.zeros(4),
        tied_bytes=np.zeros(0),
        streamed_bytes=np.zeros(4),
        edge_bytes=np.zeros(4),
        **values,
    )


def devices(*plan: int) -> np.ndarray:
    return np.array(plan, np.int16)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        # device 0: a, b and a's output, b's output; device 1: c, d, and inputs from a and b.
        ((0, 0, 1, 1), [4 + 5 + 2 + 1, 6 + 7 + 2 + 1, 0]),
        # a leaves device 0 once although b and c both read it.
        ((0, 1, 1, 1), [4 + 2, 5 + 6 + 7 + 2, 0]),
        # The CPU computes for 50 and pays no transfer.
        ((0, 2, 0, 0), [4 + 6 + 7 + 2 + 1, 0, 50]),
        # Nothing leaves a device that holds everything.
        ((1, 1, 1, 1), [0, 22, 0]),
    ],
)
def test_loads_by_hand(plan, expected):
    evaluation = evaluate_max_load(diamond(memory=False), devices(*plan))
    assert evaluation.status is Status.OK
    assert evaluation.device_seconds.tolist() == expected
    assert evaluation.seconds == max(expected)


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


def test_the_kernel_agrees_with_the_twin():
    seen = Counter()
    for seed in range(36):
        problem = random_problem(seed, Objective.MAX_LOAD, 1 + seed % 9, 1 + seed % 4)
        plans = random_devices(seed, problem, 12)
        values, codes = max_load_batch(problem, plans)
        for plan, value, code in zip(plans, values, codes, strict=True):
            expected, status = max_load(problem, plan)
            assert STATUS_CODES[code] is status
            assert value == pytest.approx(expected, rel=1e-12)
            single = evaluate_max_load(problem, plan)
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
EXPERT = {"bert24": 20.084, "gnmt": 46.2085, "resnet50": 43.9183}


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


@pytest.mark.parametrize("model", EXPERT)
def test_expert_splits_cost_what_the_authors_program_says(model):
    problem = published(f"layers/{model}_inference")
    plan = expert_split(problem, model)
    value = evaluate_max_load(problem, plan).seconds
    assert float(f"{1e3 * value:.6g}") == EXPERT[model]


def expert_split(problem: Problem, model: str) -> np.ndarray:
    import json

    document = json.loads((GRAPHS / f"human-experts/{model}_inference_expert.json").read_text())
    plan = np.full(problem.graph.num_nodes, problem.hardware.num_accelerators, np.int16)
    for device, part in enumerate(document["fpgas"]):
        for name in part["nodes"]:
            plan[problem.graph.index[name]] = device
    return plan
