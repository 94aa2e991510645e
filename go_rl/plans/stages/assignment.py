"""`assign_stages`: operators of a program by stages, from the devices that a plan gives some.

A device has one stage where the devices can take turns: in some order each needs only results of
those before it. Else it has several, one for each number of changes of device before them
(`go_rl.plans.run.segments`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonpath
from typing import Protocol, runtime_checkable

import networkx as nx
import numpy as np
from jaxtyping import Int64

from go_rl.core import OpGraph, PlanError

NOWHERE = -1
"""Device of a constant, and stage of a tensor that no stage makes."""


@runtime_checkable
class HasDevices(Protocol):
    """A plan, as far as stages go by it."""

    @property
    def device(self) -> Int64[np.ndarray, "N"]:
        """[N] device of each node."""
        ...

    @property
    def replicas(self) -> Mapping[int, tuple[int, ...]]:
        """Devices that compute a node as well, for each node that has such copies."""
        ...


@dataclass(frozen=True)
class ProgramOperators:
    """Operators of a program, in an order in which they can run."""

    names: Sequence[str]
    above: Sequence[Sequence[int]]
    """Operators whose results each reads."""
    shown: Sequence[Sequence[int]]
    """Those of them with whose device it goes where the plan has none for it: the first wins."""
    given: Sequence[bool]
    """Whether it reads an input of the model."""
    follows: Collection[int] = ()
    """Operators that go with the first of `shown` even where the plan has a device for them."""
    travels: Collection[int] = ()
    """Operators that every stage which reads them makes for itself."""


@dataclass(frozen=True)
class StageAssignment:
    """Operators in stages."""

    device: tuple[int, ...]
    """Device of each stage."""
    members: tuple[tuple[int, ...], ...]
    """Operators of each stage, copies and constants included."""
    stage: tuple[int, ...]
    """Stage whose results of each operator the others read; `NOWHERE`: each makes it by itself."""


def assign_stages(
    operators: ProgramOperators,
    graph: OpGraph,
    plan: HasDevices,
    owners: Callable[[str], Sequence[int]],
) -> StageAssignment:
    """Return the stages of a program.

    Args:
        operators: of the program.
        graph: that the plan is for.
        plan: see there.
        owners: the operators that a node of the graph is, is a part of, or became.

    Raises:
        PlanError: the plan spreads over devices what is one operator.
    """
    placed = _placed(operators.names, graph, plan, owners)
    home = _home(operators, placed, _fed(operators, placed))
    order, stage = _stages(operators.above, home)
    members: list[set[int]] = [set() for _ in order]
    for number, at in enumerate(stage):
        if at != NOWHERE:
            members[at].add(number)
        for device in placed[number][1:]:
            members[_first(order, device)].add(number)
    travels = {i for i, device in enumerate(home) if device == NOWHERE} | set(operators.travels)
    for inside in members:
        _take_travellers(inside, operators.above, travels)
    return StageAssignment(tuple(order), tuple(tuple(sorted(m)) for m in members), tuple(stage))


def _placed(
    names: Sequence[str], graph: OpGraph, plan: HasDevices, owners: Callable[[str], Sequence[int]]
) -> list[tuple[int, ...]]:
    """Devices of each operator: its own, then those of copies; none where the plan has no node."""
    found: list[dict[int, str]] = [{} for _ in names]
    copies: list[set[int]] = [set() for _ in names]
    for node, name in enumerate(map(str, graph.names)):
        for number in owners(name):
            found[number].setdefault(int(plan.device[node]), name)
            copies[number].update(plan.replicas.get(node, ()))
    for name, devices in zip(names, found, strict=True):
        if len(devices) > 1:
            (one, first), (other, second) = list(devices.items())[:2]
            raise PlanError(
                f"operator {name!r} is one in the file, and the plan has its parts on several "
                f"devices: {first!r} on {one}, {second!r} on {other}; optimize again with the "
                "parts of every operator together (--colocate operators), or with these alone "
                f"(--fixed '{commonpath([first, second])}*={one}')"
            )
    return [
        (*devices, *sorted(others - set(devices)))
        for devices, others in zip(found, copies, strict=True)
    ]


def _fed(operators: ProgramOperators, placed: Sequence[Sequence[int]]) -> list[bool]:
    """Whether each operator needs the model's inputs, or is placed by the plan."""
    fed: list[bool] = []
    for reads, above, devices in zip(operators.given, operators.above, placed, strict=True):
        fed.append(reads or bool(devices) or any(fed[i] for i in above))
    return fed


def _home(
    operators: ProgramOperators, placed: Sequence[Sequence[int]], fed: Sequence[bool]
) -> list[int]:
    """Device of each operator; `NOWHERE`: it follows from constants alone."""
    home = [devices[0] if devices else NOWHERE for devices in placed]
    fallback = max(home, default=0)
    for i, operands in enumerate(operators.shown):  # views with what they show, and quantisers
        if i in operators.follows or (home[i] == NOWHERE and fed[i]):
            devices = (home[operator] for operator in operands)
            home[i] = next((device for device in devices if device != NOWHERE), home[i])
    below: dict[int, list[int]] = defaultdict(list)
    for i, above in enumerate(operators.above):
        for operator in above:
            below[operator].append(i)
    for i in reversed(range(len(home))):  # views of the model's own inputs
        if home[i] == NOWHERE and fed[i]:
            devices = [home[reader] for reader in below[i] if home[reader] != NOWHERE]
            home[i] = min(devices, default=fallback)
    return home


def _stages(above: Sequence[Sequence[int]], home: Sequence[int]) -> tuple[list[int], list[int]]:
    """Device of each stage, and the stage of each operator."""
    devices = nx.DiGraph()
    devices.add_nodes_from(set(home) - {NOWHERE})
    devices.add_edges_from(
        (home[u], home[v]) for v, us in enumerate(above) for u in us
        if home[u] != home[v] and NOWHERE not in (home[u], home[v])
    )  # fmt: skip
    try:
        order = list(nx.lexicographical_topological_sort(devices))
        keys = [(0, device) for device in order]
        level = [0] * len(home)
    except nx.NetworkXUnfeasible:  # the devices do not take turns
        level = [0] * len(home)
        for v, us in enumerate(above):
            before = (level[u] + (home[u] != home[v]) for u in us if home[u] != NOWHERE)
            level[v] = max(before, default=0)
        keys = sorted({(level[i], device) for i, device in enumerate(home) if device != NOWHERE})
    number = {key: i for i, key in enumerate(keys)}
    stage = [number.get((level[i], device), NOWHERE) for i, device in enumerate(home)]
    return [device for _, device in keys], stage


def _first(order: Sequence[int], device: int) -> int:
    """The first stage of a device; copies of a plan for a ring, where a device has one."""
    if device not in order:
        raise PlanError(f"the plan copies operators to device {device}, which has no other")
    return list(order).index(device)


def _take_travellers(
    inside: set[int], above: Sequence[Sequence[int]], travels: Collection[int]
) -> None:
    """Add what the members of a stage need of operators that each stage makes for itself."""
    open_ends = list(inside)
    while open_ends:
        for maker in above[open_ends.pop()]:
            if maker in travels and maker not in inside:
                inside.add(maker)
                open_ends.append(maker)
