"""The rules of a plan, one rule a line with its sentence, and `legal`, the loop over them.

Shares no code with solvers, environments or simulators. Dimension letters as in
`go_rl.verify.layout`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise

import numpy as np
from jaxtyping import Int

from go_rl.core.errors import name_largest
from go_rl.core.evaluation import Status
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_graph import FREE
from go_rl.core.graph.op_kind import PRODUCT_KINDS, OpKind
from go_rl.core.hardware.hardware import Device
from go_rl.core.objective import Objective
from go_rl.core.problem import REPLICATE_SHARE, Problem
from go_rl.verify.layout import Layout, read_layout

MAX_MESSAGES = 20
"""Violations of one rule that a verdict lists; more would only hide the first."""
ROUNDING = 1e-9
"""Relative tolerance of comparisons between sums, whose order of addition may differ."""


@dataclass(frozen=True)
class Violation:
    """A violation of a rule."""

    rule: str
    """Name of the rule, as in docs/objectives.md."""
    message: str
    """Message that says what is wrong and where, with node ids and chips."""
    status: Status = Status.ILLEGAL
    """Status of a plan that violates this rule."""


@dataclass(frozen=True)
class Rule:
    """A rule: its name, its sentence, when it applies, and its violations."""

    name: str
    english: str
    applies: Callable[[Problem], bool]
    broken: Callable[[Layout], Iterator[str]]
    status: Status = Status.ILLEGAL


def legal(
    problem: Problem, device: Int[np.ndarray, "N"], replicas: Mapping[int, Sequence[int]]
) -> tuple[Violation, ...]:
    """Return a plan's violations, at most `MAX_MESSAGES` a rule; empty when legal.

    Args:
        device: [N] device of each node.
        replicas: further devices that hold a copy, by node index.

    Raises:
        PlanError: ``device`` has another length than the graph, or a copy is of no node.
    """
    layout = read_layout(problem, device, replicas)
    return _violations(FORM_RULES, layout) or _violations(RULES, layout)


def _violations(rules: Sequence[Rule], layout: Layout) -> tuple[Violation, ...]:
    return tuple(
        Violation(rule.name, message, rule.status)
        for rule in rules
        if rule.applies(layout.problem)
        for message in islice(rule.broken(layout), MAX_MESSAGES)
    )


def _out_of_range(layout: Layout) -> Iterator[str]:
    devices = layout.problem.hardware.num_devices
    outside = (layout.chip < 0) | (layout.chip >= devices)
    for i in np.flatnonzero(outside).tolist():
        name = layout.problem.graph.names[layout.node[i]]
        where = layout.device(int(layout.chip[i]))
        yield f"node {name!r} is on {where}; the hardware has 0..{devices - 1}"


def _repeated_copies(layout: Layout) -> Iterator[str]:
    seen = set(enumerate(layout.home.tolist()))
    for node, chip in zip(layout.copy_node.tolist(), layout.copy_chip.tolist(), strict=True):
        if (node, chip) in seen:
            name = layout.problem.graph.names[node]
            yield f"node {name!r} is already on {layout.device(chip)}; a copy repeats it"
        seen.add((node, chip))


def _split_classes(layout: Layout) -> Iterator[str]:
    colocation = layout.problem.graph.colocation
    members = np.flatnonzero(colocation != FREE)
    _, first, which = np.unique(colocation[members], return_index=True, return_inverse=True)
    leader = members[first][which]
    for node, lead in zip(members.tolist(), leader.tolist(), strict=True):
        if layout.home[node] != layout.home[lead]:
            yield (
                f"{layout.named(node)} and {layout.named(lead)} are both of colocation class "
                f"{colocation[node]}"
            )


def _moved_pins(layout: Layout) -> Iterator[str]:
    for node, device in layout.problem.fixed.items():
        if layout.home[node] != device:
            yield f"{layout.named(node)} is pinned to {layout.device(device)}"


def _unsupported(layout: Layout) -> Iterator[str]:
    problem = layout.problem
    seconds = problem.seconds[problem.device_kind[layout.chip], layout.node]
    unable = ~np.isfinite(seconds)
    devices = problem.hardware.devices
    choosy = np.array([bool(each.supports or each.cannot or each.rates) for each in devices])
    for i in np.flatnonzero(choosy[layout.chip]).tolist():
        unable[i] |= not _is_named_right(problem, int(layout.node[i]), devices[layout.chip[i]])
    if problem.objective.traits.is_replayed:  # inputs and constants run nowhere
        unable &= ~problem.graph.is_fed[layout.node]
    for i in np.flatnonzero(unable).tolist():
        name, chip = problem.graph.names[layout.node[i]], int(layout.chip[i])
        kind = devices[chip].kind
        yield f"node {name!r} is on {layout.device(chip)}; a {kind} cannot run it"


def _is_named_right(problem: Problem, node: int, device: Device) -> bool:
    """Whether the device's patterns allow the node; they say nothing of inputs and constants."""
    if problem.graph.is_fed[node]:
        return True
    if not _has_rate(problem, node, device):
        return False
    kind = OpKind(int(problem.graph.kind[node]))
    words = [problem.graph.op_type[node].casefold(), kind.name.casefold()]

    def matched(patterns: Sequence[str]) -> bool:
        return any(re.fullmatch(translate(p.casefold()), word) for p in patterns for word in words)

    return not matched(device.cannot) and (not device.supports or matched(device.supports))


def _has_rate(problem: Problem, node: int, device: Device) -> bool:
    """Whether the device can compute in the element type of a product: its rate is not 0."""
    graph = problem.graph
    if problem.hardware.element_bytes is not None or graph.element_type is None:
        return True
    if graph.kind[node] not in PRODUCT_KINDS:
        return True
    rates = dict(device.rates)
    element = ElementType(int(graph.element_type[node]))
    wider = {ElementType.FLOAT4: ElementType.FLOAT8, ElementType.FLOAT8: ElementType.BFLOAT16,
             ElementType.INT4: ElementType.INT8}  # fmt: skip
    while element.label not in rates and element in wider:
        element = wider[element]
    return element is ElementType.FLOAT32 or rates.get(element.label, 1.0) > 0


def _too_heavy(layout: Layout) -> Iterator[str]:
    ring = _ring(layout.problem)
    for device, chip in enumerate(layout.problem.hardware.devices):
        if chip.is_cpu and not ring:
            continue
        resident = layout.resident_weights(device)
        if resident > chip.memory_bytes * (1 + ROUNDING):
            yield (
                f"{layout.device(device)} holds {resident:.6g} bytes of weights; its memory is "
                f"{chip.memory_bytes:.6g}; the largest: {name_largest(layout.weights_on(device))}"
            )


def _backwards(layout: Layout) -> Iterator[str]:
    graph, (edges, chips) = layout.problem.graph, layout.needs
    homes = edges[chips == layout.home[graph.receivers[edges]]]
    u, v = graph.senders[homes], graph.receivers[homes]
    back = layout.home[u] > layout.home[v]
    for s, r in zip(u[back].tolist(), v[back].tolist(), strict=True):
        yield f"edge {layout.named(s)} -> {layout.named(r)} goes to a lower chip without a copy"


def _starved_copies(layout: Layout) -> Iterator[str]:
    graph, (edges, chips) = layout.problem.graph, layout.needs
    of_copy = chips != layout.home[graph.receivers[edges]]
    late = of_copy & (layout.home[graph.senders[edges]] > chips)
    for e, chip in zip(edges[late].tolist(), chips[late].tolist(), strict=True):
        copied, needed = graph.names[graph.receivers[e]], layout.named(int(graph.senders[e]))
        yield f"the copy of node {copied!r} on chip {chip} needs {needed}, which comes later"


def _skipped_chips(layout: Layout) -> Iterator[str]:
    used = np.unique(layout.home)
    every = layout.problem.all_chips
    last = layout.problem.hardware.num_devices - 1 if every else int(used[-1])
    for chip in np.setdiff1d(np.arange(last + 1), used).tolist():
        why = "every chip must be used" if every else f"chip {used[-1]} is used"
        yield f"chip {chip} is nobody's home, yet {why}"


def _triangles(layout: Layout) -> Iterator[str]:
    direct = layout.direct
    reach = direct.copy()
    for a in range(len(direct) - 2, -1, -1):
        reach[a] |= reach[direct[a]].any(axis=0)
    longer = (direct.astype(np.int64) @ reach.astype(np.int64)) > 0
    graph, (edges, chips) = layout.problem.graph, layout.needs
    senders = layout.home[graph.senders[edges]]
    for a, c in np.argwhere(direct & longer).tolist():
        e = int(edges[(senders == a) & (chips == c)][0])
        path = " -> ".join(map(str, _chip_path(direct, reach, a, c)))
        consumer = graph.names[graph.receivers[e]]
        yield (
            f"edge {layout.named(int(graph.senders[e]))} -> {consumer!r} (chip {c}) closes a "
            f"triangle with the longer path of chips {path}"
        )


def _chip_path(direct: np.ndarray, reach: np.ndarray, a: int, c: int) -> list[int]:
    """A path of at least two edges from a to c, by the nearest next chip."""
    path = [a]
    while path[-1] != c:
        onward = direct[path[-1]] & reach[:, c]
        path.append(int(np.flatnonzero(onward)[0]) if onward.any() else c)
    return path


def _any_copy(layout: Layout) -> Iterator[str]:
    for node, chip in zip(layout.copy_node.tolist(), layout.copy_chip.tolist(), strict=True):
        name = layout.problem.graph.names[node]
        yield f"node {name!r} has a copy on {layout.device(chip)}; these rules allow no copies"


def _copied_class_members(layout: Layout) -> Iterator[str]:
    colocation = layout.problem.graph.colocation
    classes, sizes = np.unique(colocation, return_counts=True)
    size = dict(zip(classes.tolist(), sizes.tolist(), strict=True))
    copied = np.unique(layout.copy_node)
    for node in copied[colocation[copied] != FREE].tolist():
        if (mates := size[int(colocation[node])]) > 1:
            yield f"node {layout.named(node)} is one of {mates} of its colocation class"


def _expensive_copies(layout: Layout) -> Iterator[str]:
    work = layout.problem.work
    total = float(work[np.isfinite(work)].sum())
    limit = REPLICATE_SHARE * total * (1 + ROUNDING)
    for node in np.unique(layout.copy_node).tolist():
        if not _cone_within(layout.problem, node, limit):
            yield (
                f"node {layout.named(node)} has copies; with its ancestors it costs more than "
                f"{REPLICATE_SHARE:.1%} of the work ({REPLICATE_SHARE * total:.3g} s)"
            )


def _cone_within(problem: Problem, node: int, limit: float) -> bool:
    """Whether the node and all its ancestors take at most ``limit`` seconds together."""
    offsets, edge_ids = problem.graph.predecessors
    seen, front, spent = {node}, [node], 0.0
    while front and spent <= limit:
        n = front.pop()
        spent += float(problem.work[n])
        before = problem.graph.senders[edge_ids[offsets[n] : offsets[n + 1]]].tolist()
        front += [p for p in dict.fromkeys(before) if p not in seen]
        seen.update(before)
    return spent <= limit


def _not_contiguous(layout: Layout) -> Iterator[str]:
    graph, unit = layout.problem.graph, layout.piece
    example: dict[tuple[int, int], int] = {}
    for e, pair in enumerate(
        zip(unit[graph.senders].tolist(), unit[graph.receivers].tolist(), strict=True)
    ):
        if pair[0] != pair[1]:
            example.setdefault(pair, e)
    before: dict[int, set[int]] = {}
    for u, v in example:
        before.setdefault(v, set()).add(u)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        loop = error.args[1]
        edges = [example[pair] for pair in pairwise(loop)]
        steps = [
            f"{layout.named(int(graph.senders[e]))} -> {layout.named(int(graph.receivers[e]))}"
            for e in edges
        ]
        yield "pieces wait for each other: " + ", ".join(steps)


def _always(_: Problem) -> bool:
    return True


def _ring(problem: Problem) -> bool:
    return problem.objective.traits.has_rules


def _copying(problem: Problem) -> bool:
    return _ring(problem) and problem.rules.replicate


FORM_RULES: tuple[Rule, ...] = (
    Rule("device-range", "every node and copy sits on a device of the hardware",
         _always, _out_of_range),
    Rule("copy-repeats", "a copy sits where the node is not yet",
         _always, _repeated_copies),
)  # fmt: skip
"""Conditions without which the other rules cannot be evaluated."""

RULES: tuple[Rule, ...] = (
    Rule("acyclic", "an edge goes to the same or a higher chip, or its consumer's chip has a copy",
         _ring, _backwards),
    Rule("no-skip", "the chips that are homes are exactly 0..m (all of them with all_chips)",
         _ring, _skipped_chips),
    Rule("triangle", "no tensor goes from chip a to c when a longer path a -> ... -> c exists",
         lambda p: _ring(p) and p.rules.triangle, _triangles),
    Rule("colocation", "the nodes of a colocation class share their home",
         _always, _split_classes),
    Rule("fixed", "a pinned node sits where it is pinned",
         _always, _moved_pins),
    Rule("no-copies", "without a rule set that replicates, nothing is copied",
         lambda p: not _copying(p), _any_copy),
    Rule("copy-cost", "a copied node with all its ancestors costs at most 0.1 % of the work",
         _copying, _expensive_copies),
    Rule("copy-class", "a copied node shares its colocation class with no other node",
         _copying, _copied_class_members),
    Rule("copy-inputs", "a copy finds each of its inputs on its chip or at home on a lower one",
         _copying, _starved_copies),
    Rule("contiguous", "accelerators' node sets and CPU nodes depend on each other acyclically",
         lambda p: p.objective is Objective.LATENCY, _not_contiguous),
    Rule("supported", "a node sits on devices whose kind can run it",
         _always, _unsupported, Status.UNSUPPORTED),
    Rule("weights", "the weights on a device fit its memory, tied weights counted once",
         lambda p: p.memory, _too_heavy, Status.OUT_OF_MEMORY),
)  # fmt: skip
