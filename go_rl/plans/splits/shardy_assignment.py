"""Assignments of Shardy's MPMD: named computations to meshes, one mesh a device."""

from __future__ import annotations

import re
from typing import Any

from go_rl.plans.splits.devices_by_name import by_key
from go_rl.plans.splits.split import Split, SplitContext

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
