"""Operators that a device cannot run: patterns, every method, the checker, refusals."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH

from go_rl.compare.portfolio.registry import METHODS
from go_rl.core import (
    Budget,
    Device,
    ElementType,
    Hardware,
    HardwareError,
    Links,
    Objective,
    OpKind,
    Optimizer,
    Problem,
    ProblemError,
    Status,
    Topology,
)
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.objectives.makespan.methods.best_of import DefaultPlacement
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.objectives.methods import Exhaustive
from go_rl.policy.agent import new_agent
from go_rl.policy.policy_search import PolicySearch
from go_rl.verify.check_plan import check_plan
from go_rl.verify.makespan_value import replayed

UNTRAINED = {"dispatch": TINY_DISPATCH}
MAKESPAN_METHODS = METHODS[Objective.MAKESPAN]
PLAIN = Device("plain", 1e9, 1e9, 1e9)
MATRIX = Device("matrix", 8e9, 1e9, 4e9, supports=("MatMul", "conv*"))
VECTOR = Device("vector", 4e9, 1e9, 4e9, cannot=("matmul", "Convolution"))


@pytest.mark.parametrize(
    ("supports", "cannot", "op_type", "kind", "runs"),
    [
        ((), (), "Conv", OpKind.CONVOLUTION, True),
        (("conv*",), (), "ConvTranspose", OpKind.CONVOLUTION, True),
        (("convolution",), (), "Conv", OpKind.CONVOLUTION, True),
        (("MatMul",), (), "Gemm", OpKind.MATMUL, True),
        (("Gemm",), (), "MatMul", OpKind.MATMUL, False),
        ((), ("Gather*", "Loop"), "GatherND", OpKind.GATHER, False),
        ((), ("Gather",), "Loop", OpKind.CONTROL, True),
        (("*",), ("loop",), "Loop", OpKind.CONTROL, False),
    ],
)
def test_patterns_match_types_and_kinds_in_any_case(supports, cannot, op_type, kind, runs):
    device = replace(PLAIN, supports=supports, cannot=cannot)
    assert device.runs(op_type, kind) is runs


def problem_on(devices: tuple[Device, ...], seed: int = 0, nodes: int = 12, **options) -> Problem:
    """A graph of products, convolutions and elementwise operators on connected devices."""
    rng, builder = np.random.default_rng(seed), GraphBuilder("mixed")
    kinds = [("MatMul", OpKind.MATMUL), ("Conv", OpKind.CONVOLUTION), ("Add", OpKind.ELEMENTWISE)]
    builder.add_node(Node("x", "Input", OpKind.INPUT, output_bytes=8.0))
    for i in range(nodes):
        op_type, kind = kinds[int(rng.integers(3))]
        flops = float(rng.integers(1, 9)) * 1e6
        builder.add_node(
            Node(f"n{i}", op_type, kind, flops=flops, output_bytes=1e3, bytes_accessed=3e3)
        )
        for before in sorted({0, int(rng.integers(i + 1))}):
            builder.add_edge(before, i + 1, 1e3)
    hardware = Hardware("mixed", devices, Links(Topology.FULL, 1e7, 1e-5))
    chosen = {"objective": Objective.MAKESPAN, "cost_model": Analytical()} | options
    return make_problem(builder.build(), hardware, ProblemOptions(**chosen))


def method_named(name: str) -> Optimizer:
    """A method of the portfolio, or a search with an untrained policy."""
    if name in UNTRAINED:
        return PolicySearch(new_agent(UNTRAINED[name], 0))
    return MAKESPAN_METHODS[name]()


@pytest.fixture
def unsupported(monkeypatch) -> list[bool]:
    """Whether each plan that was priced has a node where it cannot run."""
    seen: list[bool] = []

    def watched(price):
        def wrapped(pricer, plans, *rows):
            found = price(pricer, plans, *rows)
            able = np.isfinite(pricer.problem.seconds)[pricer.problem.device_kind]
            there = able[plans.device, np.arange(plans.device.shape[1])]
            seen.extend((~there & ~pricer.problem.graph.is_fed).any(axis=1).tolist())
            return found

        return wrapped

    for name in ("price", "trace"):
        monkeypatch.setattr(MakespanPricer, name, watched(getattr(MakespanPricer, name)))
    return seen


@pytest.mark.parametrize(
    "name", [*(n for n in MAKESPAN_METHODS if n not in ("policy", "hdp")), *UNTRAINED]
)
def test_every_method_respects_what_devices_support(name, unsupported):
    devices = (MATRIX, VECTOR, MATRIX, VECTOR)
    problem = problem_on(devices)
    plan = method_named(name).optimize(problem, Budget(samples=20), 0)
    if name == "one-device":
        assert plan.evaluation.status is Status.UNSUPPORTED
        return
    assert unsupported
    assert not any(unsupported)
    assert check_plan(plan, problem).ok
    graph = problem.graph
    for node in np.flatnonzero(~graph.is_fed).tolist():
        device = devices[int(plan.device[node])]
        assert device.runs(graph.op_type[node], OpKind(int(graph.kind[node])))


@pytest.mark.parametrize("seed", range(2))
def test_the_best_of_all_placements_is_that_of_brute_force(seed):
    devices = (MATRIX, VECTOR, replace(PLAIN, peak_flops=5e8))
    problem = problem_on(devices, seed, nodes=5, decisions=("placement",))
    graph = problem.graph
    best = np.inf
    for chosen in product(range(len(devices)), repeat=graph.num_nodes - 1):
        device = [chosen[0], *chosen]
        named = zip(device[1:], graph.op_type[1:], graph.kind[1:].tolist(), strict=True)
        if all(devices[d].runs(op_type, OpKind(kind)) for d, op_type, kind in named):
            best = min(best, replayed(problem, np.array(device), None, None).seconds)
    plan = Exhaustive().optimize(problem, Budget(samples=10**6), 0)
    assert plan.value == pytest.approx(best)


def test_the_checker_reads_the_patterns_itself():
    problem = problem_on((MATRIX, VECTOR))
    plan = DefaultPlacement().optimize(problem, Budget(samples=1), 0)
    node = problem.graph.op_type.index("Add")
    device = plan.device.copy()
    device[node] = 0
    blind = replace(problem, seconds=np.where(np.isinf(problem.seconds), 1e-6, problem.seconds))
    verdict = check_plan(replace(plan, device=device), blind)
    assert verdict.status is Status.UNSUPPORTED
    assert f"node {problem.graph.names[node]!r} is on device 0; a matrix cannot" in verdict.sentence


def test_an_operator_that_nobody_runs_is_named():
    with pytest.raises(ProblemError) as raised:
        problem_on((replace(VECTOR, kind="a"), replace(VECTOR, kind="b", supports=("Add",))))
    words = str(raised.value)
    assert "no device can run operator 'n" in words
    assert "device 'a' cannot run matmul, Convolution; device 'b' supports only Add and" in words
    assert "Let supports of a device name its type or kind" in words


def test_pins_and_classes_that_no_device_can_serve_are_named():
    problem = problem_on((MATRIX, VECTOR))
    add, product_ = (problem.graph.op_type.index(t) for t in ("Add", "MatMul"))
    pinned = problem_on((MATRIX, VECTOR), fixed={add: 0})
    plan = DefaultPlacement().optimize(pinned, Budget(samples=1), 0)
    assert plan.evaluation.status is Status.UNSUPPORTED
    assert "(Add) is pinned to device 0, a matrix, which cannot" in plan.evaluation.detail
    label = np.full(problem.graph.num_nodes, -1, np.int32)
    label[[add, product_]] = 7
    parted = replace(problem, graph=replace(problem.graph, colocation=label))
    plan = DefaultPlacement().optimize(parted, Budget(samples=1), 0)
    assert "must share a device (colocation class 7), and no" in plan.evaluation.detail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"supports": "Conv"}, "supports must be a list, not 'Conv'"),
        ({"cannot": [3]}, "cannot[0] must be a text, not 3"),
        ({"supports": []}, "supports lists nothing; leave it out"),
        ({"support": ["Conv"]}, "unknown field 'support'; did you mean 'supports'?"),
    ],
)
def test_bad_patterns_are_one_clear_error(change, words):
    document = Hardware("x", (MATRIX,), Links(Topology.FULL, 1.0)).to_json()
    assert Hardware.from_json(document).devices == (MATRIX,)
    document["devices"][0] = document["devices"][0] | change
    with pytest.raises(HardwareError, match="devices") as raised:
        Hardware.from_json(document, "mine.json")
    assert words in str(raised.value)


def test_a_product_runs_only_where_its_element_type_has_a_rate():
    plain = problem_on((PLAIN, PLAIN), nodes=4)
    types = np.full(plain.graph.num_nodes, ElementType.FLOAT64, np.int8)
    graph = replace(plain.graph, element_type=types)
    slow = replace(PLAIN, kind="slow", peak_flops=1e6, rates=(("float64", 1e6),))
    without = replace(PLAIN, kind="without", rates=(("float64", 0.0),))
    options = ProblemOptions(objective=Objective.MAKESPAN, cost_model=Analytical())
    problem = make_problem(graph, replace(plain.hardware, devices=(without, slow)), options)
    products = np.flatnonzero(graph.product_type)
    assert products.size
    assert np.isinf(problem.seconds[problem.device_kind[0], products]).all()
    plan = DefaultPlacement().optimize(problem, Budget(samples=1), 0)
    assert check_plan(plan, problem).ok
    moved = np.where(graph.product_type > 0, 0, np.array(plan.device))
    blind = replace(problem, seconds=np.where(np.isinf(problem.seconds), 1e-6, problem.seconds))
    assert "a without cannot run it" in check_plan(replace(plan, device=moved), blind).sentence
    assert set(np.array(plan.device)[products].tolist()) == {1}
    alone = replace(plain.hardware, devices=(without,))
    with pytest.raises(ProblemError, match=r"in float64.*device 'without' cannot compute in float"):
        make_problem(graph, alone, options)
