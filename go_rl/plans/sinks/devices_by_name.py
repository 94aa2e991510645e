"""Sinks that name the device of each module or node: ``device_map`` of Hugging Face, affinities of
OpenVINO's HETERO plugin, topology and assignment of Shardy's MPMD (named computations to meshes,
one mesh a device), and JSON of go_rl's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from go_rl.graphs.cutting.layer_blocks import Part, scope_path
from go_rl.plans.sinks.onnx_operators import devices_by_name
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.named_nodes import node_names


def render_device_map(plan: Placed) -> str:
    """Return the JSON object; a host processor is ``"cpu"``, other devices are numbers.

    Raises:
        SplitError: a module with weights is on several devices.
    """
    words = {name: _hf_device(plan, device) for name, device in module_devices(plan).items()}
    return json.dumps(words, indent=1) + "\n"


def module_devices(plan: Placed) -> dict[str, int]:
    """Return the device of each outermost module all of whose weights share one.

    Raises:
        SplitError: a module with weights is on several devices, or none has weights.
    """
    weighty = np.flatnonzero((plan.graph.weight_bytes > 0) & plan.fixed).tolist()
    paths = {node: plan.module(node) for node in weighty}
    found: dict[str, int] = {}
    for part, device in uniform_parts(paths, plan.device.tolist()).items():
        if isinstance(part, int):
            raise plan.error(
                f"places whole modules, and module {'.'.join(paths[part])!r} is on several devices"
            )
        found[".".join(part)] = device
    if not found:
        raise plan.error(f"places modules with weights, and {plan.graph.name!r} has none")
    return found


def _hf_device(plan: Placed, device: int) -> int | str:
    first = plan.hardware.num_accelerators
    if device < first:
        return device
    return "cpu" if plan.hardware.num_devices == first + 1 else f"cpu:{device - first}"


def render_affinities(plan: Placed) -> str:
    """Return a JSON object of ``GPU.1`` by operator, for ``node.get_rt_info()["affinity"]``.

    Raises:
        ReadError, SplitError: see `devices_by_name`.
    """
    named = devices_by_name(plan, plan.model, needs_names=False)
    words = {name: _openvino_device(plan, device) for name, device in named.items()}
    return json.dumps(words, indent=1) + "\n"


def _openvino_device(plan: Placed, device: int) -> str:
    first = plan.hardware.num_accelerators
    return f"GPU.{device}" if device < first else f"CPU.{device - first}"


def render_shardy(plan: Placed) -> str:
    """Return a line with the topology and one with the assignment of modules, which are the names
    that ``mpmd.named_computation`` is to give them.

    Raises:
        SplitError: a module with weights is on several devices, or has a name that the option
            cannot hold.
    """
    devices = range(plan.hardware.num_devices)
    meshes = ", ".join(f'<"d{device}" : <["x"=1]>>' for device in devices)
    found = module_devices(plan)
    wrong = next((name for name in found if set(name) & set("@,= \n")), None)
    if wrong is not None:
        raise plan.error(f"cannot say module {wrong!r}: it has one of @ , = or a blank")
    entries = ",".join(f"{name}@d{device}" for name, device in found.items())
    return f"topology=#mpmd.topology<{meshes}>\nassignment={entries}\n"


def render_json(plan: Placed) -> str:
    """Return the JSON object; every node is covered."""
    names = node_names(plan.graph)
    paths = {node: scope_path(name) for node, name in enumerate(plan.graph.names)}
    found: dict[str, int] = {}
    for part, device in uniform_parts(paths, plan.device.tolist()).items():
        for key in _keys(plan, part):
            found[key] = device
    assert all(names.of_pattern(key) for key in found)
    return json.dumps(found, indent=1) + "\n"


def _keys(plan: Placed, part: int | Part) -> list[str]:
    """A module by its dotted name, unless that is a node's, or has nodes that are in no scope."""
    names = node_names(plan.graph)
    if isinstance(part, int):
        return [names.names[part]]
    key = ".".join(part)
    inside = [n for n in names.by_module[part] if scope_path(names.names[n])[: len(part)] == part]
    alike = len(np.unique(plan.device[names.by_module[part]])) == 1
    if key in names.by_name or not alike:
        return [names.names[node] for node in inside]
    return [key]


def uniform_parts(paths: Mapping[int, Part], device: Sequence[int]) -> dict[int | Part, int]:
    """Return the device of each module all of whose nodes share one, the outermost such modules
    only, and of each node that is in none, in the order of their first nodes.

    Args:
        paths: modules around each node, the outermost first.
        device: of each node.
    """
    found: dict[int, tuple[int | Part, int]] = {}
    open_: list[tuple[int, list[int]]] = [(0, list(paths))]
    while open_:
        depth, nodes = open_.pop()
        groups: dict[Part, list[int]] = {}
        for node in nodes:
            if len(paths[node]) <= depth:
                found[node] = node, int(device[node])
            else:
                groups.setdefault(paths[node][: depth + 1], []).append(node)
        for module, inside in groups.items():
            devices = {int(device[node]) for node in inside}
            if len(devices) == 1:
                found[min(inside)] = module, devices.pop()
            else:
                open_.append((depth + 1, inside))
    return dict(found[first] for first in sorted(found))
