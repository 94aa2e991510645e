"""Hardware as a JSON document: reading, with the field that is wrong named, and writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from go_rl.core.errors import HardwareError
from go_rl.core.files.strict_json import shown
from go_rl.core.files.typed_json import from_json, value_from_json
from go_rl.core.hardware.hardware import MAX_DEVICES, Device, Hardware, located
from go_rl.core.hardware.links import Links

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


@dataclass(frozen=True)
class _Document:
    """Fields of a description of hardware."""

    devices: tuple[Mapping[str, Any], ...]
    """Groups of equal devices: fields of `Device`, and ``count``."""
    links: Mapping[str, Any]
    name: str | None = None
    description: str = ""
    element_bytes: float | None = None


def read_hardware(document: Any, where: str) -> Hardware:
    """Read a description of hardware; a `HardwareError` names the field that is wrong."""
    found = from_json(_Document, document, where, HardwareError)
    with located(where):
        groups = [_devices(group, f"devices[{i}]") for i, group in enumerate(found.devices)]
        return Hardware(
            name=where if found.name is None else found.name,
            devices=tuple(device for group in groups for device in group),
            links=from_json(Links, found.links, "links", HardwareError),
            element_bytes=found.element_bytes,
            description=found.description,
        )


def _devices(group: Mapping[str, Any], where: str) -> list[Device]:
    """Equal devices; their rates are an object by element type."""
    entry = dict(group)
    count = value_from_json(int, entry.pop("count", 1), f"{where}: count", HardwareError)
    if not 1 <= count <= MAX_DEVICES:
        raise HardwareError(f"{where}: count must be 1 to {MAX_DEVICES}, not {shown(count)}")
    if "rates" in entry:
        here = f"{where}: rates"
        rates = value_from_json(Mapping[str, float], entry["rates"], here, HardwareError)
        entry["rates"] = list(rates.items())
    for name in PATTERNS:
        if entry.get(name) == []:
            raise HardwareError(
                f"{where}: {name} lists nothing; leave it out for a device that runs all"
            )
    return [from_json(Device, entry, where, HardwareError)] * count


def _links_json(links: Links) -> dict[str, Any]:
    """Links as `read_hardware` reads them; groups and hosts are left out where there are none."""
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
