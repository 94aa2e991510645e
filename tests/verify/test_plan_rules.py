"""Hand-written plans for every rule: legal ones, and illegal ones that break exactly one rule."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from small_problems import boxes, build_problem, ring_of

from go_rl.core import Objective, PlanError, Status
from go_rl.verify.rules import FORM_RULES, RULES, legal

CHAIN = [("a", "b"), ("b", "c")]
TRIANGLE = [("a", "b"), ("b", "c"), ("a", "c")]
CHEAP = 1e-4
"""Seconds of a node that may be copied beside the big nodes of 1 second."""


@dataclass(frozen=True)
class Case:
    """One plan and the rule it breaks (None: legal) with words its message must hold."""

    what: str
    rule: str | None
    words: tuple[str, ...]
    nodes: str
    edges: list[tuple]
    device: list[int]
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    rules: str = "strict"
    per_node: dict[str, dict[str, Any]] = field(default_factory=dict)
    chips: int = 3
    fields: dict[str, Any] = field(default_factory=dict)


CHEAP_A = {"seconds": {"a": CHEAP}}
# s feeds t, t feeds z; the chain x -> y -> z is the long way round.
BESIDE = [("s", "t"), ("t", "z"), ("x", "y"), ("y", "z")]
CHEAP_ST = {"seconds": {"s": CHEAP, "t": CHEAP}}
FAN = [("a", "b"), ("a", "c")]

RING_CASES = [
    Case("a chain over the chips", None, (), "abc", CHAIN, [0, 1, 2]),
    Case("everything on chip 0", None, (), "abc", CHAIN, [0, 0, 0]),
    Case("a node beyond the last chip", "device-range", ("'c'", "chip 3", "0..2"),
         "abc", CHAIN, [0, 1, 3]),
    Case("a negative chip", "device-range", ("'a'", "chip -1"), "abc", CHAIN, [-1, 0, 0]),
    Case("a copy beyond the last chip", "device-range", ("'a'", "chip 7"),
         "abc", TRIANGLE, [0, 1, 2], {0: (7,)}, "default", CHEAP_A),
    Case("a copy at home", "copy-repeats", ("'a'", "chip 0"),
         "abc", TRIANGLE, [0, 1, 2], {0: (0,)}, "default", CHEAP_A),
    Case("the same copy twice", "copy-repeats", ("'a'", "chip 2"),
         "abc", TRIANGLE, [0, 1, 2], {0: (2, 2)}, "default", CHEAP_A),
    Case("an edge runs backwards", "acyclic", ("'b' (chip 2)", "'c' (chip 1)"),
         "abc", CHAIN, [0, 2, 1], rules="relay"),
    Case("a copy serves the lower chip", None, (),
         "abc", FAN, [1, 0, 1], {0: (0,)}, "default", CHEAP_A),
    Case("the copy is on another chip", "acyclic", ("'a' (chip 1)", "'b' (chip 0)"),
         "abc", FAN, [1, 0, 2], {0: (2,)}, "default", CHEAP_A),
    Case("chip 1 is skipped", "no-skip", ("chip 1", "chip 2 is used"),
         "ab", [("a", "b")], [0, 2]),
    Case("chip 0 is skipped", "no-skip", ("chip 0",), "ab", [("a", "b")], [1, 1]),
    Case("a copy does not fill a chip", "no-skip", ("chip 1",),
         "ab", [("a", "b")], [0, 2], {0: (1,)}, "default",
         {"seconds": {"a": CHEAP}}),
    Case("a trailing chip may stay empty", None, (), "abc", CHAIN, [0, 0, 1]),
    Case("every chip is demanded", "no-skip", ("chip 2", "every chip must be used"),
         "abc", CHAIN, [0, 0, 1], fields={"all_chips": True}),
    Case("every chip is demanded and used", None, (),
         "abc", CHAIN, [0, 1, 2], fields={"all_chips": True}),
    Case("a triangle", "triangle", ("'a' (chip 0)", "'c' (chip 2)", "0 -> 1 -> 2"),
         "abc", TRIANGLE, [0, 1, 2]),
    Case("a triangle with a longer side", "triangle", ("0 -> 1 -> 2 -> 3",),
         "abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], [0, 1, 2, 3], chips=4),
    Case("a relayed triangle", None, (), "abc", TRIANGLE, [0, 1, 2], rules="relay"),
    Case("a far edge with no longer path", None, (),
         "abc", [("a", "b"), ("a", "c")], [0, 1, 2]),
    Case("a triangle needs three chips", None, (), "abc", TRIANGLE, [0, 1, 1]),
    Case("a copy undoes the triangle", None, (),
         "abc", TRIANGLE, [0, 1, 2], {0: (2,)}, "replicate", CHEAP_A),
    Case("a copy on the middle chip leaves no path through it", None, (),
         "abc", TRIANGLE, [0, 1, 2], {0: (1,)}, "replicate", CHEAP_A),
    Case("an edge into a copy closes a triangle", "triangle",
         ("'s' (chip 0)", "'t' (chip 2)", "0 -> 1 -> 2"),
         "stxyz", BESIDE,
         [0, 1, 0, 1, 2], {1: (2,)}, "replicate", CHEAP_ST),
    Case("with its input copied too it does not", None, (),
         "stxyz", BESIDE, [0, 1, 0, 1, 2], {0: (2,), 1: (2,)}, "replicate", CHEAP_ST),
    Case("a class is split", "colocation", ("'a' (chip 0)", "'c' (chip 1)", "class 4"),
         "abc", CHAIN, [0, 0, 1], per_node={"colocation": {"a": 4, "c": 4}}),
    Case("classes are kept", None, (),
         "abc", CHAIN, [0, 0, 1], per_node={"colocation": {"a": 4, "b": 4, "c": 2}}),
    Case("a pin is moved", "fixed", ("'b' (chip 0)", "pinned to chip 1"),
         "abc", CHAIN, [0, 0, 1], fields={"fixed": {1: 1}}),
    Case("a pin is kept", None, (), "abc", CHAIN, [0, 1, 1], fields={"fixed": {1: 1}}),
    Case("strict rules copy nothing", "no-copies", ("'a'", "chip 1"),
         "abc", CHAIN, [0, 1, 2], {0: (1,)}, "strict", CHEAP_A),
    Case("relay copies nothing", "no-copies", ("'a'", "chip 2"),
         "abc", TRIANGLE, [0, 1, 2], {0: (2,)}, "relay", CHEAP_A),
    Case("a dear node is copied", "copy-cost", ("'a' (chip 0)", "0.1%"),
         "abc", CHAIN, [0, 1, 2], {0: (1,)}, "default"),
    Case("a cheap node has dear ancestors", "copy-cost", ("'b'",),
         "abc", CHAIN, [0, 0, 1], {1: (1,)}, "default", {"seconds": {"b": CHEAP}}),
    Case("a copy costs just too much", "copy-cost", ("'a'",),
         "abc", CHAIN, [0, 1, 2], {0: (1,)}, "default",
         {"seconds": {"a": 0.0012, "b": 0.5, "c": 0.4988}}),
    Case("a copy costs just not too much", None, (),
         "abc", CHAIN, [0, 1, 2], {0: (1,)}, "default",
         {"seconds": {"a": 0.001, "b": 0.5, "c": 0.499}}),
    Case("each ancestor is counted once", None, (),
         "stuvx", [("s", "t"), ("s", "u"), ("t", "v"), ("u", "v"), ("v", "x")],
         [0, 0, 0, 0, 1], {3: (1,)}, "default",
         {"seconds": {"s": 6e-4, "t": 1e-4, "u": 1e-4, "v": 1e-4}}),
    Case("a member of a class is copied", "copy-class", ("'a'", "2 of its"),
         "abc", TRIANGLE, [0, 0, 1], {0: (1,)}, "default",
         {"seconds": {"a": CHEAP}, "colocation": {"a": 0, "b": 0}}),
    Case("a class of one may be copied", None, (),
         "abc", TRIANGLE, [0, 0, 1], {0: (1,)}, "default",
         {"seconds": {"a": CHEAP}, "colocation": {"a": 0}}),
    Case("a copy sits below its input", "copy-inputs",
         ("copy of node 't' on chip 0", "'s' (chip 1)"),
         "stx", [("s", "t"), ("t", "x")], [1, 1, 0], {1: (0,)}, "default", CHEAP_ST),
    Case("a copy takes its input from below", None, (),
         "stx", [("s", "t"), ("t", "x")], [0, 0, 1], {1: (1,)}, "default", CHEAP_ST),
    Case("a chip that cannot run a node", "supported", ("'b'", "chip 1", "tile cannot"),
         "abc", CHAIN, [0, 1, 2], per_node={"seconds": {"b": float("inf")}}),
    Case("weights just fit", None, (),
         "abc", CHAIN, [0, 0, 1], per_node={"weights": {"a": 60, "b": 40, "c": 100}}),
    Case("weights overflow", "weights", ("chip 0", "101 bytes", "100"),
         "abc", CHAIN, [0, 0, 1], per_node={"weights": {"a": 61, "b": 40, "c": 100}}),
    Case("memory is not asked for", None, (), "abc", CHAIN, [0, 0, 1],
         per_node={"weights": {"a": 61, "b": 40}}, fields={"memory": False}),
    Case("tied weights count once a chip", None, (), "abc", CHAIN, [0, 0, 1],
         per_node={"weights": {"a": 60, "b": 60, "c": 60}, "tied": {"a": 3, "b": 3, "c": 3}}),
    Case("weights tied to others do not", "weights", ("chip 0", "120 bytes"), "abc", CHAIN,
         [0, 0, 1],
         per_node={"weights": {"a": 60, "b": 60, "c": 60}, "tied": {"a": 3, "b": 2, "c": 3}}),
    Case("the weights of copies count", "weights", ("chip 1", "110 bytes"),
         "abc", TRIANGLE, [0, 1, 1], {0: (1,)}, "default",
         {"seconds": {"a": CHEAP}, "weights": {"a": 10, "b": 50, "c": 50}}),
]  # fmt: skip

BOX_CASES = [
    Case("data may flow any way", None, (), "abc", CHAIN, [1, 0, 2]),
    Case("a device may stay empty", None, (), "abc", CHAIN, [1, 1, 1]),
    Case("nothing is copied", "no-copies", ("'a'", "device 1"),
         "abc", CHAIN, [0, 1, 1], {0: (1,)}, "default", CHEAP_A),
    Case("an accelerator that cannot", "supported", ("'b'", "device 1", "tile"),
         "abc", CHAIN, [0, 1, 2], per_node={"seconds": {"b": float("inf")}}),
    Case("the CPU can", None, (),
         "abc", CHAIN, [0, 2, 1], per_node={"seconds": {"b": float("inf")}}),
    Case("a CPU has memory enough", None, (),
         "abc", CHAIN, [2, 2, 2], per_node={"weights": {"a": 500.0}}),
    Case("an accelerator has not", "weights", ("device 1",),
         "abc", CHAIN, [1, 2, 2], per_node={"weights": {"a": 500.0}}),
    Case("a class is split", "colocation", ("device 0", "device 2"),
         "abc", CHAIN, [0, 1, 2], per_node={"colocation": {"a": 0, "c": 0}}),
    Case("a pin is moved", "fixed", ("'a'",), "abc", CHAIN, [0, 1, 2], fields={"fixed": {0: 2}}),
]  # fmt: skip

LATENCY_CASES = [
    Case("one after the other", None, (), "abcd", [*CHAIN, ("c", "d")], [0, 0, 1, 2]),
    Case("left and entered again", "contiguous", ("'a' (device 0) -> 'b' (device 1)",),
         "abc", CHAIN, [0, 1, 0]),
    Case("left to the CPU and entered again", "contiguous", ("'b' (device 2)",),
         "abc", CHAIN, [0, 2, 0]),
    Case("a CPU may come in between", None, (), "abc", CHAIN, [2, 0, 2]),
    Case("two devices wait for each other", "contiguous", ("device 0", "device 1"),
         "abcd", [("a", "b"), ("c", "d")], [0, 1, 1, 0]),
]  # fmt: skip


CASES = {
    Objective.RING: RING_CASES,
    Objective.MAX_LOAD: BOX_CASES,
    Objective.LATENCY: LATENCY_CASES,
}


@pytest.mark.parametrize(
    ("objective", "case"),
    [pytest.param(each, c, id=f"{each}: {c.what}") for each, cases in CASES.items() for c in cases],
)
def test_rules(objective, case):
    hardware = ring_of(case.chips) if objective is Objective.RING else boxes(2, 1)
    fields = {"objective": objective, "per_node": case.per_node, **case.fields}
    problem = build_problem(case.nodes, case.edges, hardware, case.rules, **fields)
    found = legal(problem, np.array(case.device, np.int16), case.replicas)
    assert [v.rule for v in found] == ([] if case.rule is None else [case.rule])
    for word in case.words:
        assert word in found[0].message


def test_every_rule_is_broken_by_some_case():
    broken = {case.rule for case in RING_CASES + BOX_CASES + LATENCY_CASES} - {None}
    assert broken == {rule.name for rule in FORM_RULES + RULES}


def test_each_rule_has_english_and_a_name_of_its_own():
    table = FORM_RULES + RULES
    assert len({rule.name for rule in table}) == len(table)
    assert all(rule.english for rule in table)


def test_status_says_what_kind_of_failure_it_is():
    heavy = build_problem("ab", [("a", "b")], ring_of(2), per_node={"weights": {"a": 101}})
    assert legal(heavy, np.array([0, 1]), {})[0].status is Status.OUT_OF_MEMORY
    wrong = build_problem("ab", [("a", "b")], ring_of(2), per_node={"seconds": {"a": np.inf}})
    assert legal(wrong, np.array([0, 1]), {})[0].status is Status.UNSUPPORTED
    assert legal(wrong, np.array([1, 0]), {})[0].status is Status.ILLEGAL


def test_on_a_ring_a_cpu_has_a_memory_too():
    hardware = replace(boxes(1, 1), links=ring_of(2).links)
    problem = build_problem("ab", [("a", "b")], hardware, per_node={"weights": {"b": 11}})
    found = legal(problem, np.array([0, 1]), {})
    assert [(v.rule, "chip 1 holds 11 bytes" in v.message) for v in found] == [("weights", True)]


def test_several_rules_are_reported_together():
    problem = build_problem("abc", CHAIN, ring_of(4), per_node={"weights": {"a": 101}})
    found = legal(problem, np.array([3, 0, 0]), {})
    assert [v.rule for v in found] == ["acyclic", "no-skip", "no-skip", "weights"]


@pytest.mark.parametrize(
    ("device", "replicas", "words"),
    [
        ([0, 1], {}, "(2,); the graph has 3 nodes"),
        ([0, 1, 2], {3: (1,)}, "3 is not the index of a node"),
        ([0, 1, 2], {-1: (1,)}, "-1 is not the index of a node"),
    ],
)
def test_a_plan_of_another_graph_is_refused(device, replicas, words):
    problem = build_problem("abc", CHAIN, ring_of(3), "default")
    with pytest.raises(PlanError) as error:
        legal(problem, np.array(device), replicas)
    assert words in str(error.value)
