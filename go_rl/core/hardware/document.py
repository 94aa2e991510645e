"""Hardware as a JSON document: reading, with the field that is wrong named, and writing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from math import isfinite
from typing import Any

from go_rl.core.errors import HardwareError, nearest
from go_rl.core.files.strict_json import shown
from go_rl.core.hardware.hardware import MAX_DEVICES, Device, Engine, Hardware, located
from go_rl.core.hardware.links import LinkGroup, Links, Topology

PATTERNS = ("supports", "cannot")
"""Fields of a device that list patterns of operators."""


def hardware_json(hardware: Hardware) -> dict[str, Any]:
    """Return a document that `read_hardware` reads back; equal devices are one entry."""
    groups: list[dict[str, Any]] = []
    for device in hardware.devices:
        entry = {k: v for k, v in asdict(device).items() if v or not isinstance(v, tuple)}
        entry |= {name: list(entry[name]) for name in PATTERNS if name in entry}
        if device.rates:
            entry["rates"] = dict(device.rates)
        if device.engines:
            entry["engines"] = [{**asdict(e), "kinds": list(e.kinds)} for e in device.engines]
        if groups and {k: v for k, v in groups[-1].items() if k != "count"} == entry:
            groups[-1]["count"] += 1
        else:
            groups.append({**entry, "count": 1})
    return {
        "name": hardware.name,
        "description": hardware.description,
        "element_bytes": hardware.element_bytes,
        "devices": groups,
        "links": _links_json(hardware.links),
    }


def read_hardware(document: Any, where: str) -> Hardware:
    """Read a description of hardware; a `HardwareError` names the field that is wrong."""
    if not isinstance(document, Mapping):
        raise HardwareError(f"{where}: hardware is a JSON object with devices and links")
    _known(document, {"name", "description", "element_bytes", "devices", "links"}, where)
    groups = document.get("devices")
    if not isinstance(groups, list) or not groups:
        raise HardwareError(f"{where}: field 'devices' must list at least one device")
    if not isinstance(document.get("links"), Mapping):
        raise HardwareError(
            f"{where}: field 'links' is missing; give topology ({', '.join(Topology)}) and "
            "bandwidth"
        )
    devices: list[Device] = []
    for i, group in enumerate(groups):
        devices += _devices(group, f"{where}: devices[{i}]")
    element = document.get("element_bytes")
    if element is not None:
        element = _number(element, f"{where}: element_bytes")
    with located(where):
        links = _links(document["links"], "links")
        return Hardware(
            name=str(document.get("name", where)),
            devices=tuple(devices),
            links=links,
            element_bytes=element,
            description=str(document.get("description", "")),
        )


def _engines(document: Any, where: str) -> tuple[Engine, ...]:
    if not isinstance(document, list):
        raise HardwareError(f"{where} must be a list")
    found = []
    for i, entry in enumerate(document):
        here = f"{where}[{i}]"
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise HardwareError(f"{here} must be an object with a name")
        _known(entry, {f.name for f in fields(Engine)}, here)
        count, kinds = entry.get("count", 1), entry.get("kinds", ())
        if isinstance(count, bool) or not isinstance(count, int):
            raise HardwareError(f"{here}: count must be an integer, not {shown(count)}")
        if not isinstance(kinds, list | tuple) or not all(isinstance(k, str) for k in kinds):
            raise HardwareError(f"{here}: kinds must list names of operator kinds")
        if not isinstance(entry.get("split", False), bool):
            raise HardwareError(f"{here}: split must be true or false")
        with located(here):
            found.append(Engine(entry["name"], count, tuple(kinds), entry.get("split", False)))
    return tuple(found)


def _known(document: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for key in document:
        if key not in allowed:
            raise HardwareError(f"{where}: unknown field {key!r}{nearest(key, allowed)}")


def _number(value: Any, where: str) -> float:
    """The value as a float; integers too large for one count as infinities."""
    number = not isinstance(value, bool) and isinstance(value, (int, float))
    if not number or abs(value) > sys.float_info.max or not isfinite(value):
        raise HardwareError(f"{where} must be a finite number, not {str(value)[:40]!r}")
    return float(value)


def _devices(group: Any, where: str) -> list[Device]:
    if not isinstance(group, Mapping):
        raise HardwareError(f"{where} must be an object")
    allowed = {f.name for f in fields(Device)}
    _known(group, allowed | {"count"}, where)
    for name in ("kind", "peak_flops", "memory_bytes", "memory_bandwidth"):
        if name not in group:
            raise HardwareError(f"{where}: field {name!r} is missing")
    count = group.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise HardwareError(f"{where}: count must be an integer >= 1, not {shown(count)}")
    values: dict[str, Any] = {
        k: _number(v, f"{where}: {k}")
        for k, v in group.items()
        if k not in ("kind", "is_cpu", "count", "engines", "rates", *PATTERNS)
    }
    if not isinstance(group["kind"], str) or not isinstance(group.get("is_cpu", False), bool):
        raise HardwareError(f"{where}: kind must be a string and is_cpu true or false")
    if count > MAX_DEVICES:
        raise HardwareError(f"{where}: count must be at most {MAX_DEVICES}, not {count}")
    values["engines"] = _engines(group.get("engines", []), f"{where}: engines")
    values |= {
        name: _patterns(group[name], f"{where}: {name}") for name in PATTERNS if name in group
    }
    values["rates"] = _rates_by_type(group.get("rates", {}), f"{where}: rates")
    with located(where):
        device = Device(kind=group["kind"], is_cpu=group.get("is_cpu", False), **values)
    return [device] * count


def _rates_by_type(document: Any, where: str) -> tuple[tuple[str, float], ...]:
    if not isinstance(document, Mapping):
        raise HardwareError(
            f'{where} must be FLOP/s by element type, such as {{"bfloat16": 312e12}}, not '
            f"{shown(document)}"
        )
    return tuple((str(name), _number(rate, f"{where}: {name}")) for name, rate in document.items())


def _patterns(document: Any, where: str) -> tuple[str, ...]:
    if not isinstance(document, list) or not all(isinstance(p, str) and p for p in document):
        raise HardwareError(
            f"{where} must list types or kinds of operators, such as ['Conv*', 'matmul'], not "
            f"{shown(document)}"
        )
    if not document:
        raise HardwareError(f"{where} lists nothing; leave it out for a device that runs all")
    return tuple(document)


def _links(document: Mapping[str, Any], where: str) -> Links:
    """Read `Links`, which checks the ranges."""
    _known(document, {f.name for f in fields(Links)}, where)
    topology = str(document.get("topology", ""))
    if topology not in list(Topology):
        raise HardwareError(
            f"{where}: topology must be one of {', '.join(Topology)}, not {topology!r}"
            f"{nearest(topology, map(str, Topology))}"
        )
    groups = document.get("groups", [])
    if not isinstance(groups, list):
        raise HardwareError(f"{where}: groups must be a list")
    return Links(
        topology=Topology(topology),
        **_rates(document, where),
        groups=tuple(_group(each, f"{where}: groups[{i}]") for i, each in enumerate(groups)),
        hosts=_sets(document.get("hosts", []), f"{where}: hosts"),
        shape=_shape(document.get("shape", []), f"{where}: shape"),
    )


def _links_json(links: Links) -> dict[str, Any]:
    """Links as `_links` reads them; groups and hosts are left out where there are none."""
    found: dict[str, Any] = {
        "topology": str(links.topology), "bandwidth": links.bandwidth,
        "latency_seconds": links.latency_seconds,
    }  # fmt: skip
    if links.groups:
        found["groups"] = [
            {**asdict(group), "devices": [list(some) for some in group.devices]}
            for group in links.groups
        ]
    if links.hosts:
        found["hosts"] = [list(host) for host in links.hosts]
    if links.shape:
        found["shape"] = list(links.shape)
    return found


def _group(document: Any, where: str) -> LinkGroup:
    if not isinstance(document, Mapping):
        raise HardwareError(f"{where} must be an object")
    _known(document, {f.name for f in fields(LinkGroup)}, where)
    name, shared = document.get("name"), document.get("shared", False)
    if not isinstance(name, str) or not isinstance(shared, bool):
        raise HardwareError(f"{where}: name must be a string and shared true or false")
    devices = _sets(document.get("devices"), f"{where}: devices")
    return LinkGroup(name, devices, **_rates(document, where), shared=shared)


def _rates(document: Mapping[str, Any], where: str) -> dict[str, float]:
    if "bandwidth" not in document:
        raise HardwareError(f"{where}: field 'bandwidth' is missing (bytes/s)")
    named = {"bandwidth": document["bandwidth"], "latency_seconds": 0.0} | {
        k: v for k, v in document.items() if k == "latency_seconds"
    }
    return {name: _number(value, f"{where}: {name}") for name, value in named.items()}


def _shape(document: Any, where: str) -> tuple[int, ...]:
    if not isinstance(document, list) or not all(type(size) is int for size in document):
        raise HardwareError(
            f"{where} must list whole numbers, such as [4, 4], not {shown(document)}"
        )
    return tuple(document)


def _sets(document: Any, where: str) -> tuple[tuple[int, ...], ...]:
    """Sets of devices by their numbers."""
    if not isinstance(document, list) or not all(isinstance(some, list) for some in document):
        raise HardwareError(f"{where} must list sets of devices, such as [[0, 1], [2, 3]]")
    for some in document:
        for device in some:
            if isinstance(device, bool) or not isinstance(device, int):
                raise HardwareError(f"{where}: devices are numbered 0, 1, ..., not {shown(device)}")
    return tuple(tuple(some) for some in document)
