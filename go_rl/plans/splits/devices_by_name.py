"""Splits that name devices: JSON objects of device by node, by pattern or by module, or of nodes by
device; and assignments of Shardy's MPMD, named computations to meshes, one mesh a device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from go_rl.core.files.strict_json import shown
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.device_words import device_of
from go_rl.plans.splits.named_nodes import assigned, node_names
from go_rl.plans.splits.split import Split, SplitContext, listed_nodes, split_of

AFFINITY = re.compile(r"(?:CPU|GPU|NPU)(?:\.\d+)?")
"""Device of OpenVINO."""
HF_KEY = "device_map"


def read_patterns(setting: SplitContext, document: Any) -> Split:
    """Read a JSON object of device by node name, pattern or module.

    Raises:
        SplitError: no object, a name that matches nothing, an unknown device.
    """
    return by_key(setting, "json", _object(setting, document))


def read_device_map(setting: SplitContext, document: Any) -> Split:
    """Read a ``device_map`` of Hugging Face: device by module, ``""`` for the whole model.

    Raises:
        SplitError: see `read_patterns`; weights that no module covers, as accelerate refuses them.
    """
    entries = _object(setting, document)
    if isinstance(entries.get(HF_KEY), Mapping):
        entries = entries[HF_KEY]
    split = by_key(setting, "hf", entries, modules_only=True)
    bare = np.flatnonzero(~split.named & (setting.graph.weight_bytes > 0))
    if bare.size:
        raise setting.error(
            "the device_map gives no device to the weights of "
            f"{listed_nodes(setting.graph, bare)}; accelerate refuses such a map"
        )
    return split


def read_affinities(setting: SplitContext, document: Any) -> Split:
    """Read affinities of OpenVINO's HETERO: device, such as ``GPU.1``, by node name.

    Raises:
        SplitError: see `read_patterns`.
    """
    return by_key(setting, "openvino", _object(setting, document))


def read_expert(setting: SplitContext, document: Any) -> Split:
    """Read the JSON of dnn-partitioning: ``fpgas``, then ``cpus``, each with its ``nodes``.

    Raises:
        SplitError: lists are missing, or a node is unknown.
    """
    devices = setting.hardware.num_accelerators
    try:
        lists = [(i, d["nodes"]) for i, d in enumerate(document["fpgas"])]
        lists += [(devices + i, d["nodes"]) for i, d in enumerate(document.get("cpus", []))]
        pairs = [(str(node), device) for device, nodes in lists for node in nodes]
    except (TypeError, KeyError) as error:
        raise setting.error(
            "fpgas and cpus must be lists of objects that list their nodes"
        ) from error
    return by_key(setting, "dnn-partitioning", dict(pairs))


def _object(setting: SplitContext, document: Any) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise setting.error("must be a JSON object of device by node or module")
    return document


def by_key(
    setting: SplitContext, notation: str, entries: Mapping[str, Any], modules_only: bool = False
) -> Split:
    names = node_names(setting.graph)
    find = names.of_module if modules_only else names.of_pattern
    nodes, device = {}, {}
    for key, word in entries.items():
        nodes[key] = find(key)
        if not nodes[key]:
            what = "no module" if modules_only else "no node, and no module,"
            raise setting.error(
                f"{shown(key)} matches {what} of {setting.graph.name!r}{names.said_near(key)}"
            )
        device[key] = device_of(word, setting.hardware, f"{setting.where}: device of {shown(key)}")
    known, entry = assigned(setting, device, nodes)
    keys = list(device)
    own = np.array([key in names.by_name and not modules_only for key in keys], bool)
    unit = np.where((entry != NOWHERE) & ~own[entry], entry, NOWHERE) if keys else entry
    parts = tuple(key or "the whole model" for key in keys)
    return split_of(setting, notation, known, unit, parts)


ENTRY = r"[^@,=\s]+@\w+(?:/\d+)?(?:#\w+)?"
ASSIGNMENT = re.compile(
    rf"\s*(?:topology=[^\n]*\n\s*)?(?:assignment=)?({ENTRY}(?:,{ENTRY})*)\s*", re.DOTALL
)
_MESH = re.compile(r"<\"(\w+)\"\s*:")


def read_shardy(setting: SplitContext, text: Any) -> Split:
    """Read ``assignment=encoder@m0,decoder@m1`` of the pass that maps named computations to meshes,
    with the line ``topology=#mpmd.topology<...>`` before it or without.

    A mesh is the device of its place in the topology; without one, in the order in which meshes
    appear. Stages (``@m0/1``) and kinds of memory (``#pinned_host``) are passed over.

    Raises:
        SplitError: another form, a mesh that the topology does not have, an unknown computation.
    """
    match = ASSIGNMENT.fullmatch(str(text))
    if match is None:
        raise setting.error("must be name@mesh,name@mesh")
    meshes = _MESH.findall(str(text))
    given = bool(meshes)
    entries: dict[str, int] = {}
    for entry in match[1].split(","):
        name, _, mesh = entry.partition("@")
        mesh = re.split(r"[/#]", mesh)[0]
        if mesh not in meshes:
            if given:
                raise setting.error(f"{entry!r}: the topology has meshes {', '.join(meshes)}")
            meshes.append(mesh)
        if name in entries:
            raise setting.error(f"assigns {name!r} twice")
        entries[name] = meshes.index(mesh)
    return by_key(setting, "shardy", entries, modules_only=True)
