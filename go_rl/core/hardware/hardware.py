"""`Hardware`: devices and the links between them, as data."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import Any

from go_rl.core.errors import HardwareError, nearest
from go_rl.core.files.strict_json import read_json, shown
from go_rl.core.graph.op_kind import OpKind
from go_rl.core.hardware.links import (
    LONGEST_SECONDS,
    LinkGroup,
    Links,
    LinkTable,
    Topology,
    link_table,
)

MAX_DEVICES = 1024
"""Largest number of devices."""
MAX_ENGINES = 62
"""Largest number of engines of one type on a device: the simulator keeps the idle ones in one
word."""

OF_PLAN = "hardware"
"""Field of a plan.json that holds the hardware it is for."""


@dataclass(frozen=True)
class Engine:
    """Units of a device, such as streams or matrix cores; each runs one operator at a time."""

    name: str
    count: int = 1
    """Number of engines of this type."""
    kinds: tuple[str, ...] = ()
    """`OpKind` names of the operators that run here; empty: those that no other engine lists."""
    split: bool = False
    """Whether an operator is cut into `count` equal parts that run on any of the engines."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_ENGINES:
            raise HardwareError(
                f"engine {self.name!r}: count must be 1 to {MAX_ENGINES}, not {self.count}"
            )
        known = [kind.name.lower() for kind in OpKind]
        for kind in self.kinds:
            if kind not in known:
                raise HardwareError(
                    f"engine {self.name!r}: unknown kind {kind!r}{nearest(kind, known)} "
                    f"Use {', '.join(known)}"
                )


ONE_STREAM = (Engine("stream"),)
"""Default engines of a device."""


@dataclass(frozen=True)
class Device:
    """One device. SI units: FLOP/s, bytes, bytes/s, seconds."""

    kind: str
    """Device kind, the key of profiles and cost-model parameters, such as ``hermosa``."""
    peak_flops: float
    """Peak arithmetic rate in the hardware's number format, FLOP/s."""
    memory_bytes: float
    """Memory for weights and live tensors, bytes."""
    memory_bandwidth: float
    """Rate at which operators read and write that memory, bytes/s."""
    launch_seconds: float = 0.0
    """Fixed cost of starting one operator, seconds."""
    host_bandwidth: float = 16e9
    """Rate at which weights can be streamed from the host, bytes/s."""
    is_cpu: bool = False
    """A host processor: communication with host memory is free for it."""
    engines: tuple[Engine, ...] = ()
    """Engines that run its operators; empty: one stream for all. For the makespan objective."""

    @property
    def engine_list(self) -> tuple[Engine, ...]:
        """The engines, at least one."""
        return self.engines or ONE_STREAM

    def engine_of(self, kind: OpKind) -> int:
        """Return the index in `engine_list` of the engine that runs operators of a kind."""
        name, engines = kind.name.lower(), self.engine_list
        named = (i for i, engine in enumerate(engines) if name in engine.kinds)
        return next(named, next((i for i, e in enumerate(engines) if not e.kinds), 0))

    def __post_init__(self) -> None:
        for name in ("peak_flops", "memory_bytes", "memory_bandwidth", "host_bandwidth"):
            if not 0 < getattr(self, name) < inf:
                raise HardwareError(f"device {self.kind!r}: {name} must be a finite number > 0")
        if not 0 <= self.launch_seconds <= LONGEST_SECONDS:
            raise HardwareError(
                f"device {self.kind!r}: launch_seconds must be a number 0 to {LONGEST_SECONDS:g}"
            )
        _check_engines(self)


@dataclass(frozen=True)
class Hardware:
    """Devices (accelerators first, then CPUs) and their links."""

    name: str
    devices: tuple[Device, ...]
    links: Links
    element_bytes: float | None = None
    """Bytes of one element of any tensor on this hardware; None: the model's own width."""
    description: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.devices) <= MAX_DEVICES:
            raise HardwareError(
                f"hardware {self.name!r}: devices must number 1 to {MAX_DEVICES}, "
                f"not {len(self.devices)}"
            )
        if [c.is_cpu for c in self.devices] != sorted(c.is_cpu for c in self.devices):
            raise HardwareError(f"hardware {self.name!r}: list accelerators before CPUs")
        if self.element_bytes is not None and not 0 < self.element_bytes < inf:
            raise HardwareError(
                f"hardware {self.name!r}: element_bytes must be a finite number > 0"
            )
        _check_kinds(self.name, self.devices)
        with _located(f"hardware {self.name!r}"):
            self.links.check_count(len(self.devices))
        for named, device in self.links.members():
            if not 0 <= device < len(self.devices):
                raise HardwareError(
                    f"hardware {self.name!r}: links: {named} names device {device}; devices are "
                    f"0..{len(self.devices) - 1}"
                )

    @cached_property
    def link_table(self) -> LinkTable:
        """The link of each pair of devices, for fully connected ones and meshes."""
        return link_table(self.links, self.num_devices)

    @property
    def num_devices(self) -> int:
        """All devices, CPUs included."""
        return len(self.devices)

    @property
    def num_accelerators(self) -> int:
        """Devices that are not CPUs."""
        return sum(not c.is_cpu for c in self.devices)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The distinct device kinds in order of first appearance."""
        return tuple(dict.fromkeys(c.kind for c in self.devices))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document that `from_json` reads back; equal devices are one entry."""
        groups: list[dict[str, Any]] = []
        for device in self.devices:
            entry = asdict(device)
            if not device.engines:
                del entry["engines"]
            else:
                entry["engines"] = [{**asdict(e), "kinds": list(e.kinds)} for e in device.engines]
            if groups and {k: v for k, v in groups[-1].items() if k != "count"} == entry:
                groups[-1]["count"] += 1
            else:
                groups.append({**entry, "count": 1})
        return {
            "name": self.name,
            "description": self.description,
            "element_bytes": self.element_bytes,
            "devices": groups,
            "links": _links_json(self.links),
        }

    @classmethod
    def from_json(cls, document: Any, where: str = "hardware") -> Hardware:
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
        with _located(where):
            links = _links(document["links"], "links")
            return cls(
                name=str(document.get("name", where)),
                devices=tuple(devices),
                links=links,
                element_bytes=element,
                description=str(document.get("description", "")),
            )

    @classmethod
    def load(cls, path: str | Path) -> Hardware:
        """Read hardware from a JSON file: its own, or a plan.json, which says what it is for."""
        try:
            document = read_json(path)
        except OSError as error:
            raise HardwareError(f"{path}: cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise HardwareError(f"{path}: not JSON ({error})") from error
        if isinstance(document, dict) and "devices" not in document and OF_PLAN in document:
            return cls.from_json(document[OF_PLAN], f"{path}: {OF_PLAN}")
        return cls.from_json(document, str(path))


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Prefix an error about a value with its file and field."""
    try:
        yield
    except HardwareError as error:
        raise HardwareError(f"{where}: {error}") from error


def _check_engines(device: Device) -> None:
    if not device.engines:
        return
    named = [kind for engine in device.engines for kind in engine.kinds]
    names = [engine.name for engine in device.engines]
    if twice := [x for x in (*named, *names) if (*named, *names).count(x) > 1]:
        raise HardwareError(f"device {device.kind!r}: {twice[0]!r} appears twice among its engines")
    if sum(not engine.kinds for engine in device.engines) != 1:
        raise HardwareError(
            f"device {device.kind!r}: exactly one engine must list no kinds; it runs all the others"
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
        with _located(here):
            found.append(Engine(entry["name"], count, tuple(kinds), entry.get("split", False)))
    return tuple(found)


def _check_kinds(hardware: str, devices: tuple[Device, ...]) -> None:
    """Operators are priced once for each kind: devices of one kind may differ in memory only."""
    first: dict[str, Device] = {}
    for device in devices:
        kin = first.setdefault(device.kind, device)
        if replace(device, memory_bytes=kin.memory_bytes) != kin:
            raise HardwareError(
                f"hardware {hardware!r}: devices of kind {device.kind!r} differ; give each its own "
                "kind"
            )


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
        if k not in ("kind", "is_cpu", "count", "engines")
    }
    if not isinstance(group["kind"], str) or not isinstance(group.get("is_cpu", False), bool):
        raise HardwareError(f"{where}: kind must be a string and is_cpu true or false")
    if count > MAX_DEVICES:
        raise HardwareError(f"{where}: count must be at most {MAX_DEVICES}, not {count}")
    values["engines"] = _engines(group.get("engines", []), f"{where}: engines")
    with _located(where):
        device = Device(kind=group["kind"], is_cpu=group.get("is_cpu", False), **values)
    return [device] * count


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
