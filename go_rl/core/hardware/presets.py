"""Hardware by name: ``ringN``, ``host``, ``cpu-1`` and its variants, and ``<flavour>x<N>`` such as
``p100x4``."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from go_rl.core.errors import HardwareError, nearest
from go_rl.core.files.own_json import HARDWARE
from go_rl.core.hardware.hardware import MAX_DEVICES, Device, Hardware
from go_rl.core.hardware.links import Links, Topology
from go_rl.core.hardware.processor import own_cores, own_target
from go_rl.core.hardware.rates import rates_of
from go_rl.core.hardware.systems import GPU_DEVICES, SYSTEMS, gpu
from go_rl.core.printable import LONGEST_NAME, abridged, counted

HERMOSA = Device(
    kind="hermosa",
    peak_flops=24e12,
    memory_bytes=32e6,
    memory_bandwidth=1.2e12,
    launch_seconds=1e-7,
    host_bandwidth=16e9,
)
"""One die of the multi-chip module: 24 TOPS int8, 32 MB SRAM (Partitioning ML Models on Multi-Chip
Modules, MLSys 2022). Its other rates are not published: 1.2 TB/s to SRAM, 16 GB/s from the host and
0.1 µs to start an operator are our assumptions."""

HOST = Device("cpu", 1e11, 16e9, 2e10, 2e-6, 2e10, is_cpu=True)
"""Two cores of a server processor."""

CORE = Device("cpu-1", 128e9, 24e9, 25e9, 9e-6, 25e9, is_cpu=True, rates=rates_of("cpu-1"))
"""One core of the machine that measured the kernels of ``kernels-cpu-1``, a Xeon of Intel's
Sapphire Rapids: two 512-bit multiply-adds a cycle at 2.0 GHz, float32; its share of the memory and
of its bandwidth; and the time of an empty call of XLA."""

SHARED_MEMORY = 10e9, 1e-6
"""Bytes/s and seconds from one core to another through shared memory: our assumptions."""


def ring(chips: int) -> Hardware:
    """Return the multi-chip module with ``chips`` dies on a one-dimensional ring, int8."""
    return Hardware(
        name=f"ring{chips}",
        devices=(HERMOSA,) * chips,
        links=Links(Topology.RING, 16e9, 0.0),
        element_bytes=1.0,
        description=f"{chips} chips of 24 TOPS int8, 32 MB SRAM; 16 GB/s to the next and the host",
    )


def ring_variant(chips: int, mixed: bool, megabytes: int | None) -> Hardware:
    """Return `ring` with chips that differ, or with other memory.

    Args:
        chips: number of dies.
        mixed: chips 1, 3, 5, ... have half the arithmetic rate, memory and memory bandwidth.
        megabytes: SRAM of a full chip; None: 32.
    """
    plain = ring(chips)
    full = HERMOSA if megabytes is None else replace(HERMOSA, memory_bytes=megabytes * 1e6)
    half = replace(
        full,
        kind=f"{HERMOSA.kind}-half",
        peak_flops=full.peak_flops / 2,
        memory_bytes=full.memory_bytes / 2,
        memory_bandwidth=full.memory_bandwidth / 2,
    )
    dies = tuple(half if mixed and i % 2 else full for i in range(chips))
    said = f"{full.memory_bytes / 1e6:.0f} MB SRAM" + (", every other chip half of it all" * mixed)
    return replace(
        plain,
        name=plain.name + "-mixed" * mixed + (f"-{megabytes}mb" if megabytes else ""),
        devices=dies,
        description=f"{chips} chips of 24 TOPS int8, {said}; 16 GB/s to the next and the host",
    )


def host() -> Hardware:
    """Return the machine's own processor as the only device."""
    return Hardware("host", (HOST,), Links(Topology.FULL, 2e10, 0.0), None, "one CPU")


def cores(count: int, topology: Topology = Topology.FULL, kind: str = CORE.kind) -> Hardware:
    """Return ``count`` cores of a kind, joined by shared memory; see `core`."""
    joined = "on a ring" if topology is Topology.RING else "fully connected"
    said = f"{counted(count, 'core')} of a server CPU, {joined}; shared memory at 10 GB/s, 1 µs"
    name = {Topology.RING: f"{kind}-ring{count}"}.get(topology, f"{kind}x{count}")
    return Hardware(
        name=name,
        devices=(replace(CORE, kind=kind),) * count,
        links=Links(topology, *SHARED_MEMORY),
        description=said,
    )


def core(kind: str = CORE.kind) -> Hardware:
    """Return one core as the only device.

    Args:
        kind: ``cpu-1``, where the kernels of ``kernels-cpu-1`` were measured; or this machine's
            `own_target`, whose figures are taken to be those of ``cpu-1`` (its kernels have the
            times that were measured or learned here).
    """
    links = Links(Topology.FULL, *SHARED_MEMORY)
    devices = (replace(CORE, kind=kind),)
    return Hardware(kind, devices, links, None, "one core of a server CPU, float32")


EXAMPLES = ("ring6", "ring16", "ring36", "p100x4", "v100x4", "a100x8", "h100x8", "t4",
            "a100-40gbx4", "host", "cpu-1", "cpu-1x4", "cpu-1-ring4")  # fmt: skip
"""One instance of each family of presets, for lists and messages."""


THIS_CORES = {"this-cores": Topology.FULL, "this-ring": Topology.RING}
"""Presets of this machine's cores, as many as the process may use."""

LONGEST_COUNT = 9
"""Digits of a number of devices that are read."""


def load_hardware(name: str | Path) -> Hardware:
    """Return the preset called ``name``, or the hardware in the JSON file at that path.

    Raises:
        HardwareError: neither a preset (the nearest one is named) nor a readable file.
    """
    if not isinstance(name, str | Path):
        raise HardwareError(f"hardware is named by a preset or a JSON file, not {name!r}")
    text = str(name)
    if match := re.fullmatch(r"ring(\d+)", text):
        return ring(_count(text, match[1]))
    if match := re.fullmatch(r"ring(\d+)(-mixed)?(?:-([1-9]\d{0,5})mb)?", text):
        count, mixed, size = match.groups()
        return ring_variant(_count(text, count), bool(mixed), int(size) if size else None)
    if match := re.fullmatch(rf"(?:gpu-)?({'|'.join(GPU_DEVICES)})(?:x(\d+))?", text):
        return gpu(match[1], _count(text, match[2] or "1"))
    if match := re.fullmatch(r"gpu(\d+)", text):
        return gpu("a100", _count(text, match[1]))
    if match := re.fullmatch(rf"(cpu-1|{re.escape(own_target())})(?:(x|-ring)(\d+))?", text):
        kind, joined, count = match.groups()
        topology = Topology.FULL if joined == "x" else Topology.RING
        return cores(_count(text, count), topology, kind) if joined else core(kind)
    if text in THIS_CORES:
        return cores(min(own_cores(), MAX_DEVICES), THIS_CORES[text], own_target())
    if text == "host":
        return host()
    if text in SYSTEMS:
        return SYSTEMS[text]
    if Path(text).suffix == ".json" or Path(text).is_file():
        return Hardware.load(text)
    if Path(text).is_dir():
        raise HardwareError(f"{text}: is a folder; wanted is {HARDWARE}")
    raise HardwareError(
        f"unknown hardware {text!r}{nearest(text, (*EXAMPLES, *SYSTEMS))} Presets: ringN (ring36), "
        "ringN-mixed, ringN-12mb, "
        f"gpuN, {', '.join(GPU_DEVICES)} with or without xN, {', '.join(SYSTEMS)}, host, "
        "cpu-1, cpu-1xN, cpu-1-ringN "
        f"(or this machine's {own_target()} for cpu-1), this-ring, this-cores; or the path of a "
        "JSON file"
    )


def _count(name: str, digits: str) -> int:
    """Return a number of devices, of which Python reads no more than 4,300 digits."""
    if len(digits) > LONGEST_COUNT or not 1 <= int(digits) <= MAX_DEVICES:
        raise HardwareError(
            f"hardware {abridged(name, LONGEST_NAME)!r}: devices must number 1 to {MAX_DEVICES}"
        )
    return int(digits)
