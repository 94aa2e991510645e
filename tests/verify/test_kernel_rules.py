"""The checker's rules of kernels, and its own figures."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from reference.step_problems import step_problem
from small_problems import boxes, build_plan, build_problem, ring_of

from go_rl.core import Objective, OpKind, PlanError, Problem, Status
from go_rl.core.graph.fusion import MAX_BOUNDARY
from go_rl.core.plan_json.document import PER_DEVICE, PER_LINK
from go_rl.verify.check_plan import check_plan
from go_rl.verify.figures import plan_figures
from go_rl.verify.kernel_rules import RULES, legal_kernels
from go_rl.verify.makespan_value import replayed
from go_rl.verify.rules import MAX_MESSAGES

KIND = {"e": OpKind.ELEMENTWISE, "v": OpKind.MOVEMENT, "g": OpKind.GATHER, "m": OpKind.MATMUL,
        "c": OpKind.CONVOLUTION, "r": OpKind.REDUCTION, "o": OpKind.OTHER}  # fmt: skip
ROW = [(0, 1), (1, 2)]


def problem_of(kinds: str, edges, devices: int = 2) -> Problem:
    sized = [(u, v, 1.0, *rest) for u, v, *rest in edges]
    names = [f"n{i}" for i in range(len(kinds))]
    return step_problem(
        [1.0] * len(kinds), sized, devices, kinds=[KIND[k] for k in kinds], names=names
    )


def broken(kinds: str, edges, group, device=None):
    problem = problem_of(kinds, edges)
    place = np.zeros(len(kinds), np.int16) if device is None else np.array(device, np.int16)
    return legal_kernels(problem, place, None, np.array(group))


@dataclass(frozen=True)
class Case:
    """A fusion, and the rule that it breaks with words of the message."""

    what: str
    rule: str | None
    words: tuple[str, ...]
    kinds: str
    edges: list[Any]
    group: list[int]
    device: list[int] | None = field(default=None)


CASES = [
    Case("nothing is fused", None, (), "emr", ROW, [0, 1, 2]),
    Case("a row is fused", None, (), "mee", ROW, [0, 0, 0]),
    Case("siblings hang together by their producer", None, (), "eee", [(0, 1), (0, 2)], [0, 0, 0]),
    Case("siblings hang together by their consumer", None, (), "eee", [(0, 2), (1, 2)], [0, 0, 0]),
    Case("a kernel is called by a higher node", "kernel-name",
         ("the kernel of 'n0' (elementwise) is called 1, not 0",), "eee", ROW, [1, 1, 2]),
    Case("a kernel is called by no node", "kernel-name", ("called 7, not 0",), "ee", [(0, 1)],
         [7, 7]),
    Case("a name is taken by another kernel", "kernel-name", ("'n1'", "called -1, not 1"), "ee",
         [(0, 1)], [0, -1]),
    Case("two devices", "kernel-device",
         ("'n0' (elementwise) on device 0 and 'n1' (elementwise) on device 1 share a kernel",),
         "eee", ROW, [0, 0, 0], [0, 1, 0]),
    Case("a reduction as producer", "kernel-kinds",
         ("'n1' (elementwise) cannot share a kernel with its producer 'n0' (reduction)",),
         "re", [(0, 1)], [0, 0]),
    Case("a reduction after a product", "kernel-kinds", ("'n1' (reduction)", "'n0' (matmul)"),
         "mr", [(0, 1)], [0, 0]),
    Case("a product as consumer", "kernel-kinds", ("'n1' (matmul)", "'n0' (elementwise)"),
         "em", [(0, 1)], [0, 0]),
    Case("something else", "kernel-kinds", ("'n1' (other)",), "eo", [(0, 1)], [0, 0]),
    Case("one inner edge of three is wrong", "kernel-kinds", ("'n2' (elementwise)",
         "'n1' (reduction)"), "ere", [(0, 1), (0, 2), (1, 2)], [0, 0, 0]),
    Case("a product and a convolution", "kernel-heavy",
         ("'n0' (matmul) and 'n1' (convolution) share a kernel",), "mce", [(0, 2), (1, 2)],
         [0, 0, 0]),
    Case("nothing joins two nodes", "kernel-joined",
         ("'n1' (elementwise) shares a kernel with 'n0' (elementwise) but no path inside joins",),
         "ee", [], [0, 0]),
    Case("the only path leaves the kernel", "kernel-joined", ("'n2'", "'n0'"), "eoe", ROW,
         [0, 1, 0]),
    Case("64 nodes", None, (), "e" * 64, [(n, n + 1) for n in range(63)], [0] * 64),
    Case("65 nodes", "kernel-size", ("the kernel of 'n0' (elementwise) has 65 nodes of 64",),
         "e" * 65, [(n, n + 1) for n in range(64)], [0] * 65),
    Case("kernels that wait for each other", "kernel-acyclic",
         ("kernels wait for each other: those of", "'n0' (elementwise)", "'n1' (other)", " -> "),
         "eoe", [*ROW, (0, 2)], [0, 1, 0]),
    Case("two kernels that wait for each other", "kernel-acyclic", ("'n0' (matmul)",
         "'n1' (elementwise)"), "megv", [(0, 2), (0, 3), (1, 2), (1, 3)], [0, 1, 1, 0]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.what)
def test_rules(case):
    found = broken(case.kinds, case.edges, case.group, case.device)
    assert {v.rule for v in found} == ({case.rule} - {None})
    for word in case.words:
        assert word in found[0].message
    assert all(v.status is Status.ILLEGAL for v in found)


def fan(others: int):
    """A joiner fused with its producer reads ``others`` results of one more node, and is read."""
    edges = [(0, 2), *((1, 2, k) for k in range(others)), (2, 3)]
    return broken("eovo", edges, [0, 1, 0, 3])


def test_a_kernel_reads_and_writes_at_most_96_tensors():
    assert fan(MAX_BOUNDARY - 1) == ()
    (found,) = fan(MAX_BOUNDARY)
    assert found.rule == "kernel-boundary"
    assert "the kernel of 'n0' (elementwise) reads and writes 97 tensors of 96" in found.message


def test_every_rule_is_broken_by_some_case_and_has_english():
    names = [rule.name for rule in RULES]
    assert {case.rule for case in CASES} - {None} | {"kernel-boundary"} == set(names)
    assert len(set(names)) == len(names)
    assert all(rule.english for rule in RULES)


def test_only_the_first_broken_rule_is_reported_at_most_20_times():
    found = broken("r" * 60, [(n, n + 1) for n in range(59)], [0] * 60)
    assert [v.rule for v in found] == ["kernel-kinds"] * MAX_MESSAGES


@pytest.mark.parametrize(
    ("priority", "group", "words"),
    [
        ([1], None, "priority has 1 entries; 'steps' has 2 nodes"),
        ([1, 2, 3], [0, 1], "priority has 3 entries"),
        (None, [0, 1, 2], "fusion_group has 3 entries; 'steps' has 2 nodes"),
        ([1, 2], [], "fusion_group has 0 entries"),
    ],
)
def test_another_length_than_the_graph_is_refused(priority, group, words):
    problem = problem_of("ee", [(0, 1)])
    arrays = [None if x is None else np.array(x, np.int64) for x in (priority, group)]
    with pytest.raises(PlanError) as error:
        legal_kernels(problem, np.zeros(2, np.int16), *arrays)
    assert words in str(error.value)


ARRAYS = (*PER_DEVICE, *PER_LINK)


@pytest.fixture
def ring():
    """A chain of three with tied weights and a copied mask, on links of 100 B/s."""
    per_node = {
        "seconds": {"m": 1e-4}, "weights": {"a": 8, "b": 8, "c": 5}, "tied": {
            "m": -1, "a": 0, "b": 0, "c": -1,
        },
    }  # fmt: skip
    edges = [("m", "a", 1.0), ("m", "c", 1.0), ("a", "b", 10.0), ("b", "c", 20.0)]
    return build_problem("mabc", edges, ring_of(3, latency=0.5), "default", per_node)


def of_node(problem, letter: str) -> int:
    return problem.graph.index[letter]


def test_a_ring_by_hand(ring):
    device = np.array([{"m": 0, "a": 0, "b": 0, "c": 1}[str(n)] for n in ring.graph.names])
    ring = replace(ring, streamed_bytes=np.where(np.array(ring.graph.names) == "m", 7.0, 0.0))
    found = plan_figures(ring, device, {of_node(ring, "m"): (1,)}, None)
    assert found.device_seconds == pytest.approx([2.0001, 1.0001, 0.0])
    assert found.link_bytes == [20.0, 0.0, 0.0]
    assert found.link_seconds == [0.2 + 0.5, 0.0, 0.0]
    assert found.weight_bytes == [8.0, 5.0, 0.0]
    assert found.streamed_bytes == [7.0, 7.0, 0.0]
    assert found.peak_bytes is None


def test_max_load_by_hand():
    problem = build_problem(
        "ab", [("a", "b")], boxes(2, 0), objective=Objective.MAX_LOAD,
        per_node={"transfers": {"a": 0.25}, "weights": {"b": 3}},
    )  # fmt: skip
    found = plan_figures(problem, np.array([0, 1]), {}, None)
    assert (found.device_seconds, found.link_seconds) == ([1.25, 1.25], [])
    assert (found.link_bytes, found.weight_bytes) == ([], [0.0, 3.0])


def test_makespan_by_hand():
    """0 (1 s) feeds 1 (4 s) and, on the other device, 2 (2 s): 2 bytes on a link of 1 B/s."""
    problem = step_problem([1.0, 4.0, 2.0], [(0, 1, 2.0), (0, 2, 2.0)], 2)
    device = np.array([0, 0, 1], np.int16)
    found = plan_figures(problem, device, {}, replayed(problem, device, None, None))
    assert found.device_seconds == [5.0, 2.0]
    assert found.link_bytes == [0.0, 2.0, 0.0, 0.0]
    assert found.link_seconds == [0.0, 2.0, 0.0, 0.0]
    assert found.peak_bytes == [2.0, 2.0]


def changed(plan: Any, **arrays: Any) -> Any:
    told = {name: np.array(values, np.float64) for name, values in arrays.items()}
    return replace(plan, evaluation=replace(plan.evaluation, **told))


@pytest.fixture
def honest(ring):
    plan = build_plan(ring, [0, 0, 0, 1], value=2.0001, bound=0.0)
    assert check_plan(plan, ring).ok
    return plan


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, 150.0])
def test_every_false_figure_is_found(name, wrong, ring, honest):
    figures = getattr(honest.evaluation, name).copy()
    figures[1] = wrong
    verdict = check_plan(changed(honest, **{name: figures}), ring)
    if name == "peak_bytes" and wrong > 100:  # the memory: such a plan does not even claim to fit
        assert verdict.sentence.startswith("A device needs more memory than it has. memory: chip 1")
        assert (verdict.is_legal, verdict.status) == (False, Status.OUT_OF_MEMORY)
        return
    assert (verdict.is_legal, verdict.status_word) == (True, "false-claims")
    assert [v.rule for v in verdict.violations] == ["evaluation"]
    assert verdict.violations[0].message.startswith(f"{name}[1] is ")


@pytest.mark.parametrize("names", [PER_DEVICE, PER_LINK])
def test_figures_of_another_number_of_devices_are_found(names, ring, honest):
    shorter = {name: getattr(honest.evaluation, name)[:-1] for name in names}
    verdict = check_plan(changed(honest, **shorter), ring)
    for name in names:
        assert f"{name} has 2 entries; it must have 3" in verdict.sentence


def test_peaks_are_at_least_the_weights_and_at_most_the_memory(ring, honest):
    for peak, ok in (([8, 5, 0], True), ([100, 100, 100], True), ([7.9, 5, 0], False)):
        assert check_plan(changed(honest, peak_bytes=peak), ring).ok is ok
    assert not check_plan(changed(honest, peak_bytes=[101, 5, 0]), ring).ok
    loose = replace(ring, memory=False)
    plan = replace(changed(honest, peak_bytes=[101, 5, 0]), memory=False)
    assert check_plan(plan, loose).ok
