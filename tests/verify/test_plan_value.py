"""The checker's own pricing against values worked out by hand and the original authors' figures."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from small_problems import boxes, build_problem, ring_of

from go_rl.core import Objective
from go_rl.costs.models import ProblemOptions, file_hardware, make_problem
from go_rl.graphs.readers import load
from go_rl.objectives.host.simulate.latency import evaluate_latency
from go_rl.objectives.host.simulate.max_load import evaluate_max_load
from go_rl.verify.value import plan_value

FORK = [("a", "b", 100.0, 0), ("a", "c", 100.0, 0), ("a", "d", 20.0, 1), ("b", "d", 10.0, 0)]
FORK_SECONDS = {"seconds": {"a": 1.0, "b": 1.5, "c": 0.25, "d": 1.0}}


@pytest.mark.parametrize(
    ("what", "device", "replicas", "latency", "seconds"),
    [
        ("one chip: the sum", [0, 0, 0, 0], {}, 0.25, 3.75),
        # Link 0: 100 + 20, link 1: 100 + 20 + 10 bytes, at 100 bytes/s; chips 1, 1.5, 1.25.
        ("a shared tensor crosses once", [0, 1, 2, 2], {}, 0.0, 1.5),
        ("a link may be the slowest", [0, 1, 2, 2], {}, 0.25, 1.55),
        ("an idle link has no latency", [0, 0, 0, 0], {}, 9.0, 3.75),
        # Chip 2 has a too: 2.25; link 0: 100, link 1: 10.
        ("a copy computes and frees links", [0, 1, 2, 2], {0: (2,)}, 0.0, 2.25),
        # Chips 1.5 + 1, 0.25 + 1 + 1; link 0: 10 bytes of b.
        ("a copy everywhere", [0, 0, 1, 1], {0: (1,)}, 0.0, 2.5),
    ],
)
def test_ring(what, device, replicas, latency, seconds):
    hardware = ring_of(3, 100.0, latency)
    problem = build_problem("abcd", FORK, hardware, "default", per_node=FORK_SECONDS)
    assert plan_value(problem, np.array(device), replicas) == pytest.approx(seconds, rel=1e-12)


def test_traffic_passes_through_every_link_between():
    edges = [("a", "d", 500.0), ("a", "b", 1.0), ("b", "c", 1.0), ("c", "d", 3.0)]
    problem = build_problem("abcd", edges, ring_of(4), "relay")
    # The tensor of a is one, as large as its largest edge; the last link also carries c's 3 bytes.
    assert plan_value(problem, np.array([0, 1, 2, 3]), {}) == pytest.approx(5.03)


def test_a_copy_takes_its_tensors_off_the_links():
    problem = build_problem("abcd", FORK, ring_of(3, 10.0), "default", per_node=FORK_SECONDS)
    # Link 0: 120, link 1: 130 bytes at 10 bytes/s; with a on chip 2 too: 100 and 10.
    assert plan_value(problem, np.array([0, 1, 2, 2]), {}) == pytest.approx(13.0)
    assert plan_value(problem, np.array([0, 1, 2, 2]), {0: (2,)}) == pytest.approx(10.0)


DIAMOND = [("a", "b"), ("a", "c"), ("a", "e"), ("b", "d"), ("c", "d")]
TIMES = {
    "seconds": {"a": 2.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 0.5},
    "cpu_seconds": {"a": 5.0, "b": 5.0, "c": 5.0, "d": 5.0, "e": 7.0},
    "transfers": {"a": 1.0, "b": 0.5, "c": 0.25, "d": 0.125, "e": 9.0},
}


@pytest.mark.parametrize(
    ("what", "device", "objective", "seconds"),
    [
        ("all on one", [0, 0, 0, 0, 0], Objective.MAX_LOAD, 8.5),
        # 0: 4 + a out 1 + b out 0.5; 1: 2.5 + a in once 1 + c out 0.25; CPU: 5.
        ("transfers once each way", [0, 0, 1, 2, 1], Objective.MAX_LOAD, 5.5),
        ("a CPU pays no transfers", [2, 2, 0, 2, 2], Objective.MAX_LOAD, 22.0),
        # a on the CPU; 0: 2 + 2 + 2 + 0.5 + a in 1.
        ("an input from the CPU", [2, 0, 0, 0, 0], Objective.MAX_LOAD, 7.5),
        ("latency on one", [0, 0, 0, 0, 0], Objective.LATENCY, 8.5),
        # 0 ends at 5.5, 1 at 5.5 + 3.75, then d on the CPU 5.
        ("one waits for the other", [0, 0, 1, 2, 1], Objective.LATENCY, 14.25),
        # CPU: a 5; then b and e side by side, e ends at 12; 0 needs b: 10 + c, d 4 + a 1 + b 0.5.
        ("CPU nodes side by side", [2, 2, 0, 0, 2], Objective.LATENCY, 15.5),
    ],
)
def test_boxes(what, device, objective, seconds):
    problem = build_problem("abcde", DIAMOND, boxes(2, 1), per_node=TIMES, objective=objective)
    assert [str(n) for n in problem.graph.names] == list("abcde")
    assert plan_value(problem, np.array(device), {}) == pytest.approx(seconds, rel=1e-12)


@dataclass(frozen=True)
class Published:
    """Figures of the original authors' program (milliseconds)."""

    graph: str
    objective: Objective
    one: float | None
    expert: float


@pytest.fixture(scope="session")
def profiles() -> Path:
    root = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / "dnn-partitioning").is_dir():
        pytest.skip("the real graphs are not here; set GO_RL_DATA to their folder")
    return root / "dnn-partitioning"


@pytest.mark.parametrize(
    "figures",
    [
        Published("bert24_inference", Objective.MAX_LOAD, 92.406, 20.084),
        Published("gnmt_inference", Objective.MAX_LOAD, 182.563, 46.2085),
        Published("resnet50_inference", Objective.MAX_LOAD, 201.45, 43.9183),
        Published("bert24_inference", Objective.LATENCY, None, 111.937),
        Published("resnet50_inference", Objective.LATENCY, None, 1014.927),
    ],
    ids=lambda f: f"{f.graph}-{f.objective}",
)
def test_published_figures(figures, profiles):
    folder = "throughput" if figures.objective is Objective.MAX_LOAD else "latency"
    graph = load(profiles / folder / "layers" / f"{figures.graph}.json")
    split = json.loads((profiles / "human-experts" / f"{figures.graph}_expert.json").read_text())
    boxes = [box["nodes"] for box in split["fpgas"]]
    hardware = file_hardware(graph)
    assert hardware is not None
    # The expert of BERT-24's latency has a box more than that file names.
    hardware = replace(hardware, devices=hardware.devices[:1] * len(boxes) + hardware.devices[-1:])
    options = ProblemOptions(objective=figures.objective, memory=False)
    problem = make_problem(graph, hardware, options)
    device = np.full(graph.num_nodes, len(boxes), np.int16)
    for i, nodes in enumerate(boxes):
        device[[graph.index[n] for n in nodes]] = i
    assert 1e3 * plan_value(problem, device, {}) == pytest.approx(figures.expert, rel=1e-5)
    simulated = {Objective.MAX_LOAD: evaluate_max_load, Objective.LATENCY: evaluate_latency}
    found = simulated[figures.objective](problem, device).seconds
    assert found == pytest.approx(plan_value(problem, device, {}), rel=1e-9)
    if figures.one is not None:
        alone = np.zeros(graph.num_nodes, np.int16)
        assert 1e3 * plan_value(problem, alone, {}) == pytest.approx(figures.one, rel=1e-4)
