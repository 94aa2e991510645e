"""`cut_model`: operators of an ONNX model by stages, from the devices of a plan's nodes.

What a plan does not know - constants, changes of layout that are folded into their readers - goes
where it is read: constants into each stage, views with what they show. Between devices goes the
quantised tensor, so that a runtime joins the same operators as in the whole model: a
``QuantizeLinear`` stays with what it quantises, a ``DequantizeLinear`` is in each stage that reads
it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from go_rl.core import OpGraph, Plan, PlanError
from go_rl.graphs.readers.onnx.order import captured_names, topological_nodes

NOWHERE = -1
"""Device of a constant, and stage of a tensor that no stage makes."""


@dataclass(frozen=True)
class CutModel:
    """Operators of a model in stages."""

    nodes: tuple[onnx.NodeProto, ...]
    """Operators of the model in an order in which they can run."""
    reads: tuple[frozenset[str], ...]
    """Names that each operator reads, those that its subgraphs capture included."""
    names: tuple[str, ...]
    """Unique name of each operator."""
    stages: tuple[tuple[int, ...], ...]
    """Operators of each stage, copies and constants included."""
    device: tuple[int, ...]
    """Device of each stage."""
    sender: Mapping[str, int]
    """Stage that sends each tensor to the others; `NOWHERE`: every stage makes it by itself."""


def cut_model(model: onnx.ModelProto, graph: OpGraph, plan: Plan, where: str) -> CutModel:
    """Return the stages of a model without local functions.

    A device has one stage where the devices can take turns, else several: see
    `go_rl.plans.run.segments`.

    Raises:
        PlanError: the plan spreads over devices what is one operator of the file.
        ReadError: the model's operators have no order.
    """
    known = {t.name for t in model.graph.initializer} | {v.name for v in model.graph.input}
    known |= {s.values.name for s in model.graph.sparse_initializer}
    nodes = tuple(topological_nodes(model.graph, known, where))
    reads = tuple(frozenset({i for i in n.input if i} | captured_names(n)) for n in nodes)
    names = _names(nodes)
    placed = _placed(names, graph, plan)
    own = [devices[0] if devices else NOWHERE for devices in placed]
    stored = {t.name for t in model.graph.initializer}
    given = {v.name for v in model.graph.input} - stored
    home = _with_quantizers(nodes, _home(nodes, reads, own, given))
    copies = [set(devices[1:]) for devices in placed]
    order, stage = _stages(nodes, reads, home)
    members: list[set[int]] = [set() for _ in order]
    for number, at in enumerate(stage):
        if at != NOWHERE:
            members[at].add(number)
        for device in copies[number]:
            members[_first(order, device)].add(number)
    for inside in members:
        _take_constants(inside, nodes, reads, home)
    pairs = zip(nodes, stage, strict=True)
    sender = {result: at for node, at in pairs for result in node.output if result}
    return CutModel(
        nodes, reads, names, tuple(tuple(sorted(inside)) for inside in members), tuple(order),
        sender,
    )  # fmt: skip


def _names(nodes: Sequence[onnx.NodeProto]) -> tuple[str, ...]:
    """The name that the reader gives each operator, made unique."""
    counts, taken = Counter(n.name for n in nodes if n.name), Counter[str]()
    found = []
    for node in nodes:
        first = node.name if counts[node.name] == 1 else next(o for o in node.output if o)
        taken[first] += 1
        found.append(first if taken[first] == 1 else f"{first}#{taken[first]}")
    return tuple(found)


def _placed(names: Sequence[str], graph: OpGraph, plan: Plan) -> list[tuple[int, ...]]:
    """Devices of each operator: its own, then those of copies; none where the plan has no node."""
    number = {name: i for i, name in enumerate(names)}
    found: list[dict[int, str]] = [{} for _ in names]
    copies: list[set[int]] = [set() for _ in names]
    for node, name in enumerate(map(str, graph.names)):
        owner = _owner(name, number)
        if owner is not None:
            found[owner].setdefault(int(plan.device[node]), name)
            copies[owner].update(plan.replicas.get(node, ()))
    for name, devices in zip(names, found, strict=True):
        if len(devices) > 1:
            (one, first), (other, second) = list(devices.items())[:2]
            raise PlanError(
                f"operator {name!r} is one in the file, and the plan has its parts on several "
                f"devices: {first!r} on {one}, {second!r} on {other}; pin them together "
                f"(--fixed '{name}*={one}') and optimize again"
            )
    return [
        (*devices, *sorted(others - set(devices)))
        for devices, others in zip(found, copies, strict=True)
    ]


def _owner(name: str, number: Mapping[str, int]) -> int | None:
    """The operator that a node is, or is a part of: a step of an LSTM, a node of an If's branch."""
    while name not in number:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return number[name]


def _home(
    nodes: Sequence[onnx.NodeProto],
    reads: Sequence[frozenset[str]],
    placed: Sequence[int],
    given: set[str],
) -> list[int]:
    """Device of each operator; `NOWHERE`: it follows from constants alone."""
    made = {o: i for i, node in enumerate(nodes) for o in node.output if o}
    fed = _fed(reads, made, placed, given)
    home = list(placed)
    for i in range(len(nodes)):
        if home[i] == NOWHERE and fed[i]:
            shown = [home[made[name]] for name in nodes[i].input if name in made]
            home[i] = next((device for device in shown if device != NOWHERE), NOWHERE)
    readers: dict[int, list[int]] = defaultdict(list)
    for i, names in enumerate(reads):
        for name in names & made.keys():
            readers[made[name]].append(i)
    for i in reversed(range(len(nodes))):  # views of the model's own inputs
        if home[i] == NOWHERE and fed[i]:
            devices = [home[r] for r in readers[i] if home[r] != NOWHERE]
            home[i] = min(devices, default=max(placed, default=0))
    return home


def _with_quantizers(nodes: Sequence[onnx.NodeProto], home: list[int]) -> list[int]:
    """Devices where each QuantizeLinear is with what it quantises."""
    made = {o: i for i, node in enumerate(nodes) for o in node.output if o}
    found = list(home)
    for i, node in enumerate(nodes):
        if node.op_type == "QuantizeLinear" and node.input[0] in made:
            above = found[made[node.input[0]]]
            found[i] = above if above != NOWHERE else found[i]
    return found


def _fed(
    reads: Sequence[frozenset[str]],
    made: Mapping[str, int],
    placed: Sequence[int],
    given: set[str],
) -> list[bool]:
    """Whether each operator needs the model's inputs, or is placed by the plan."""
    fed: list[bool] = []
    for i, names in enumerate(reads):
        above = any(fed[made[name]] for name in names if name in made)
        fed.append(placed[i] != NOWHERE or above or not given.isdisjoint(names))
    return fed


def _stages(
    nodes: Sequence[onnx.NodeProto], reads: Sequence[frozenset[str]], home: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Device of each stage, and the stage of each operator."""
    made = {o: i for i, node in enumerate(nodes) for o in node.output if o}
    above = [[made[n] for n in names if n in made and home[made[n]] != NOWHERE] for names in reads]
    arrows = {(home[u], home[v]) for v, us in enumerate(above) for u in us if home[v] != NOWHERE}
    devices = _in_turn(sorted(set(home) - {NOWHERE}), arrows)
    if devices is not None:
        place = {device: i for i, device in enumerate(devices)}
        return devices, [place.get(device, NOWHERE) for device in home]
    level = [0] * len(home)
    for v, us in enumerate(above):
        level[v] = max((level[u] + (home[u] != home[v]) for u in us), default=0)
    keys = sorted({(level[i], device) for i, device in enumerate(home) if device != NOWHERE})
    number = {key: i for i, key in enumerate(keys)}
    stage = [number.get((level[i], device), NOWHERE) for i, device in enumerate(home)]
    return [device for _, device in keys], stage


def _in_turn(devices: list[int], arrows: set[tuple[int, int]]) -> list[int] | None:
    """The devices in an order in which each needs only those before it; None: there is none."""
    left, found = list(devices), []
    while left:
        free = [d for d in left if not any(v == d and u != d and u in left for u, v in arrows)]
        if not free:
            return None
        found.append(free[0])
        left.remove(free[0])
    return found


def _first(order: Sequence[int], device: int) -> int:
    """The first stage of a device; copies of a plan for a ring, where a device has one."""
    if device not in order:
        raise PlanError(f"the plan copies operators to device {device}, which has no other")
    return list(order).index(device)


def _take_constants(
    inside: set[int],
    nodes: Sequence[onnx.NodeProto],
    reads: Sequence[frozenset[str]],
    home: Sequence[int],
) -> None:
    """Add what the members of a stage need of operators without a device, and of those that widen
    quantised tensors."""
    made = {o: i for i, node in enumerate(nodes) for o in node.output if o}
    open_ends = list(inside)
    while open_ends:
        for above in _makers(reads[open_ends.pop()], made):
            travels = home[above] == NOWHERE or nodes[above].op_type == "DequantizeLinear"
            if travels and above not in inside:
                inside.add(above)
                open_ends.append(above)


def _makers(names: frozenset[str], made: Mapping[str, int]) -> Iterator[int]:
    for name in names:
        if name in made:
            yield made[name]
