"""`Hardware`: devices and the links between them, as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from go_rl.core.errors import HardwareError, nearest
from go_rl.core.files.own_json import HARDWARE, PLAN, read_own_json
from go_rl.core.files.paths import path_of
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_kind import OpKind
from go_rl.core.hardware.links import LONGEST_SECONDS, Links, LinkTable, check_rate, link_table
from go_rl.core.hardware.rates import check_rates, priced_as

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
    """Peak arithmetic rate in float32, or in the hardware's number format, FLOP/s."""
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
    supports: tuple[str, ...] = ()
    """Types or kinds of the only operators that it can run, as patterns such as ``Conv*``; empty:
    all."""
    cannot: tuple[str, ...] = ()
    """Types or kinds of operators that it cannot run, as patterns."""
    rates: tuple[tuple[str, float], ...] = ()
    """FLOP/s of products in other element types than float32, by their names, such as
    ``bfloat16``; 0: it cannot compute in that type. Others: see `rates.priced_as`."""

    def rate(self, element: ElementType) -> float:
        """Return the FLOP/s of products that compute in an element type."""
        rates = dict(self.rates)
        return rates.get(priced_as(rates, element).label, self.peak_flops)

    @property
    def is_limited(self) -> bool:
        """Whether there are operators that it cannot run."""
        return bool(self.supports or self.cannot or not all(rate for _, rate in self.rates))

    def runs(
        self, op_type: str, kind: OpKind, product_type: ElementType = ElementType.UNKNOWN
    ) -> bool:
        """Return whether it can run operators of a type, such as ``Conv``, and kind, products in an
        element type among them; patterns match either, in any case."""
        if product_type and not self.rate(product_type):
            return False
        words = op_type.lower(), kind.name.lower()

        def named(patterns: tuple[str, ...]) -> bool:
            return any(fnmatchcase(word, p.lower()) for p in patterns for word in words)

        return (not self.supports or named(self.supports)) and not named(self.cannot)

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
        for name in ("peak_flops", "memory_bandwidth", "host_bandwidth"):
            check_rate(f"device {self.kind!r}", name, getattr(self, name))
        if not 0 < self.memory_bytes < inf:
            raise HardwareError(f"device {self.kind!r}: memory_bytes must be a finite number > 0")
        if not 0 <= self.launch_seconds <= LONGEST_SECONDS:
            raise HardwareError(
                f"device {self.kind!r}: launch_seconds must be a number 0 to {LONGEST_SECONDS:g}"
            )
        check_rates(self.rates, f"device {self.kind!r}")
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
        with located(f"hardware {self.name!r}"):
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
        from go_rl.core.hardware.document import hardware_json

        return hardware_json(self)

    @classmethod
    def from_json(cls, document: Any, where: str = "hardware") -> Hardware:
        """Read a description of hardware; a `HardwareError` names the field that is wrong."""
        from go_rl.core.hardware.document import read_hardware

        return read_hardware(document, where)

    def save(self, path: str | Path) -> None:
        """Write the JSON file atomically.

        Raises:
            HardwareError: the path is not that of a file, or cannot be written.
        """
        path = path_of(path, "a hardware file", HardwareError)
        with writing(path, HardwareError):
            write_text(path, json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Hardware:
        """Read hardware from a JSON file: its own, or a plan.json, which says what it is for."""
        document = read_own_json(path, HARDWARE, HardwareError, (PLAN,))
        if isinstance(document, dict) and "devices" not in document and OF_PLAN in document:
            return cls.from_json(document[OF_PLAN], f"{path}: {OF_PLAN}")
        return cls.from_json(document, str(path))


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix an error about a value with its file and field; hardware without a name of its own
    is called by them already."""
    try:
        yield
    except HardwareError as error:
        said = str(error).removeprefix(f"hardware {where!r}: ")
        raise HardwareError(f"{where}: {said}") from error


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
