"""`problem_for`: a model's graph, hardware and options as the problem that methods solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from numbers import Integral
from pathlib import Path

from go_rl.api.hardware.this_machine import this_machine
from go_rl.api.options import (
    FIT,
    HardwareChoice,
    JudgeOptions,
    OptimizeOptions,
    PosingOptions,
    objective_of,
)
from go_rl.core import (
    Hardware,
    HardwareError,
    NodeId,
    Objective,
    OpGraph,
    Problem,
    ProblemError,
    load_hardware,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.core.objective import OF_LINKS

LONGEST_NUMBER = 9
"""Digits of a device's number that are read."""
THIS_MACHINE = "this"
"""The machine at hand, as `this_machine` describes it."""
OWN_HARDWARE = "file"
"""The hardware that a file of dnn-partitioning or Piper brings with it."""


def problem_for(
    graph: OpGraph, options: PosingOptions | None = None, fixed: Mapping[NodeId, int] | None = None
) -> Problem:
    """Return the problem that `optimize` solves.

    Args:
        graph: the model's.
        options: hardware, objective, decisions, rules, memory and cost; None: the defaults.
        fixed: devices of nodes that must not move, by node name or pattern; see `fixed_nodes`.

    Raises:
        GoRLError: bad input, also an option that has no meaning for the objective.
    """
    from go_rl.costs.models import ProblemOptions, make_problem, named_cost

    options = options or OptimizeOptions()
    given = None if options.objective is None else objective_of(options.objective)
    objective, chosen = _objective_and_hardware(graph, options.hardware, given)
    options.check_for(objective)
    wanted = ProblemOptions(
        objective=objective,
        rules=rule_set(options.rules),
        memory=True if options.objective == FIT else options.memory,
        all_chips=isinstance(options, OptimizeOptions | JudgeOptions) and options.all_chips,
        fixed=fixed_nodes(graph, fixed or {}),
        cost_model=named_cost(options.cost, chosen),
        decisions=options.decisions,
        colocation=options.colocate,
    )
    return make_problem(graph, chosen, wanted)


def _objective_and_hardware(
    graph: OpGraph, hardware: HardwareChoice, objective: Objective | None
) -> tuple[Objective, Hardware]:
    """The user's, or what the links of the hardware, the model file and the graph suggest."""
    if hardware is None:
        objective = objective or _objective_of(graph)
        return objective, _default_hardware(graph, objective)
    chosen = named_hardware(graph, hardware)
    suggested = OF_LINKS.get(chosen.links.topology, Objective.MAX_LOAD)
    if suggested.traits.is_replayed and _brings_hardware(graph):
        suggested = Objective.MAX_LOAD
    return objective or suggested, chosen


def _objective_of(graph: OpGraph) -> Objective:
    """Profiles suggest max-load; training graphs move data both ways, which a ring does not."""
    if _brings_hardware(graph) or (graph.seconds and not graph.has_flops):
        return Objective.MAX_LOAD
    return Objective.MAKESPAN if graph.is_backward.any() else Objective.RING


def _default_hardware(graph: OpGraph, objective: Objective) -> Hardware:
    if not objective.traits.topologies and _brings_hardware(graph):
        return named_hardware(graph, OWN_HARDWARE)
    return load_hardware(objective.traits.hardware)


def named_hardware(graph: OpGraph, name: Hardware | str | Path) -> Hardware:
    """Return hardware itself, or that of a preset, a file, the machine at hand (`THIS_MACHINE`) or
    the model's file (`OWN_HARDWARE`).

    Raises:
        HardwareError: there is none of that name, or the model's file brings none.
    """
    from go_rl.costs.models import file_hardware

    if isinstance(name, Hardware):
        return name
    if name == THIS_MACHINE:
        return this_machine()[0]
    if name != OWN_HARDWARE:
        return load_hardware(name)
    own = file_hardware(graph)
    if own is None:
        raise HardwareError(
            f"--hardware {OWN_HARDWARE}: {graph.name!r} brings no hardware of its own; only "
            "JSON of dnn-partitioning or Piper does. Name a preset such as "
            f"{Objective.RING.traits.hardware!r}"
        )
    return own


def _brings_hardware(graph: OpGraph) -> bool:
    return "accelerators" in graph.meta


def fixed_nodes(graph: OpGraph, fixed: Mapping[NodeId, int]) -> dict[int, int]:
    """Return devices by node index for devices by node name, or by a pattern such as ``encoder/*``
    of names (`fnmatch`, cases as they are). A node's own name counts before patterns.

    Raises:
        ProblemError: the graph has no such node (the nearest is named), a device is no number, or
            patterns put a node on several devices.
    """
    if not isinstance(fixed, Mapping):
        raise ProblemError(f"fixed must be devices by node name, such as {{'x': 0}}, not {fixed!r}")
    named: dict[int, int] = {}
    matched: dict[int, tuple[str, int]] = {}
    for name, device in fixed.items():
        if isinstance(device, bool) or not isinstance(device, Integral) or device < 0:
            raise ProblemError(
                f"fixed: the device of {name!r} must be an index >= 0, not {device!r}"
            )
        if not isinstance(name, bool) and isinstance(name, int | str) and name in graph.index:
            named[graph.index[name]] = int(device)
            continue
        for node in _matching(graph, name):
            before = matched.setdefault(node, (str(name), int(device)))
            if before[1] != device:
                raise ProblemError(
                    f"fixed names {graph.names[node]!r} twice: {before[0]!r} on {before[1]}, "
                    f"and {name!r} on {device}; name one of them, or the node itself"
                )
    return {node: device for node, (_, device) in matched.items()} | named


def _matching(graph: OpGraph, pattern: object) -> list[int]:
    """Nodes with a name that a pattern matches, at least one."""
    names = [str(name) for name in graph.names]
    found = [n for n, name in enumerate(names) if fnmatchcase(name, str(pattern))]
    if isinstance(pattern, str) and found:
        return found
    what = "that matches" if set(str(pattern)) & set("*?[") else "of that name"
    raise ProblemError(
        f"fixed names {pattern!r}, but {graph.name!r} has no node {what}"
        f"{nearest(str(pattern), names)}"
    )


def read_pins(words: Sequence[str]) -> dict[NodeId, int]:
    """Return devices by node name or pattern from words such as ``encoder/*=0``.

    Raises:
        ProblemError: a word has no device, or a name has two.
    """
    found: dict[NodeId, int] = {}
    for word in words:
        name, _, device = word.rpartition("=")
        if not name or not device.isdecimal() or len(device) > LONGEST_NUMBER:
            raise ProblemError(
                f"fixed must be names or patterns of operators, each with = and the number of a "
                f"device, such as 'encoder/*=0', not {word!r}"
            )
        if found.setdefault(name, int(device)) != int(device):
            raise ProblemError(f"fixed names {name!r} for devices {found[name]} and {device}")
    return found
