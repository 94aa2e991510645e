"""`describe_hardware`: hardware put together from presets, own figures and links, as a user says.

``go-rl hardware new`` asks for these fields; `NewHardware` holds the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from go_rl.core.config_checks import COUNT, FINITE, FINITE_POSITIVE, check_ranges, check_tuples
from go_rl.core.errors import HardwareError, nearest
from go_rl.core.hardware.hardware import Device, Hardware
from go_rl.core.hardware.links import MESHES, Links, Topology
from go_rl.core.hardware.presets import load_hardware
from go_rl.core.hardware.systems import joined_hosts

Ask = Callable[[str, str], str]
"""Returns the answer to a question, given the question and the default."""


@dataclass(frozen=True)
class NewHardware:
    """Devices and links of hardware to be described."""

    devices: tuple[str, ...] = ()
    """Presets whose devices are taken in this order, such as a100x4 rtx-3090; hardware files
    too."""
    kind: str | None = None
    """Name of a further kind of device, with the figures below."""
    count: int = 1
    """Number of these devices."""
    tflops: float | None = None
    """Peak arithmetic rate of one of them, TFLOP/s."""
    memory_gb: float | None = None
    """Memory of one of them, GB."""
    memory_gb_per_s: float | None = None
    """Rate at which it reads its memory, GB/s."""
    launch_us: float = 0.0
    """Fixed cost of starting one operator on it, µs."""
    supports: tuple[str, ...] = ()
    """Types or kinds of the only operators that it can run, such as 'Conv*'. Default: all."""
    cannot: tuple[str, ...] = ()
    """Types or kinds of operators that it cannot run."""
    rates: tuple[str, ...] = ()
    """Rates of its products in other element types than float32, TFLOP/s, such as bfloat16=312
    int8=624; 0: it cannot compute in that type."""
    links: str = str(Topology.FULL)
    """Links between the devices: full, ring, tree, mesh or torus."""
    shape: tuple[int, ...] = ()
    """Devices along each dimension of a mesh or torus, such as 4 4."""
    link_gb_per_s: float | None = None
    """Rate of one link in one direction, GB/s. Default: that of the slowest preset."""
    link_us: float | None = None
    """Latency of one link, µs. Default: that of the slowest preset."""
    network_gb_per_s: float | None = None
    """Makes each of the presets a host with its own links and one port to a network of this rate,
    GB/s."""
    network_us: float = 10.0
    """Latency of that network, µs."""
    name: str = ""
    """Name shown to users. Default: the file's."""
    description: str = ""
    """Words shown to users."""


FIGURES = ("tflops", "memory_gb", "memory_gb_per_s", "link_gb_per_s", "network_gb_per_s")
"""Fields that are positive where they are given."""


def describe_hardware(asked: NewHardware) -> Hardware:
    """Return the hardware.

    Raises:
        HardwareError: a preset, a figure or the links are missing or wrong; the field is named.
    """
    check_tuples(asked, "hardware new", HardwareError)
    check_ranges(
        asked, "hardware new", HardwareError, count=COUNT, launch_us=FINITE, link_us=FINITE,
        network_us=FINITE, **dict.fromkeys(FIGURES, FINITE_POSITIVE),
    )  # fmt: skip
    parts = [load_hardware(name) for name in asked.devices]
    own = _own_devices(asked)
    if not parts and not own:
        raise HardwareError(
            "hardware new: name the devices, such as --devices a100x4, or describe one with "
            "--kind, --tflops, --memory-gb and --memory-gb-per-s"
        )
    name = asked.name or "new"
    if asked.network_gb_per_s is not None:
        return _networked(asked, name, parts, own)
    devices = [device for part in parts for device in part.devices] + list(own)
    devices.sort(key=lambda device: device.is_cpu)
    widths = {part.element_bytes for part in parts}
    if len(widths) > 1:
        raise HardwareError(
            f"hardware new: {', '.join(asked.devices)} have elements of different widths"
        )
    width = widths.pop() if widths else None
    links = _links(asked, _slowest(parts))
    return Hardware(name, tuple(devices), links, width, asked.description)


def ask_for(asked: NewHardware, ask: Ask) -> NewHardware:
    """Return the fields with what a user answers; an empty answer keeps the default."""
    devices = ask("devices: presets such as a100x4 2x4090, empty to describe one", "").split()
    found = replace(asked, devices=tuple(devices))
    if not devices:
        found = replace(
            found,
            kind=ask("name of the kind of device", "mine"),
            count=_whole(ask("number of devices", "1"), "number of devices"),
            tflops=_real(ask("peak TFLOP/s of one", "10"), "peak TFLOP/s"),
            memory_gb=_real(ask("memory of one, GB", "16"), "memory"),
            memory_gb_per_s=_real(ask("memory bandwidth of one, GB/s", "500"), "memory bandwidth"),
            supports=tuple(ask("only operators it runs, such as Conv* MatMul", "all").split()),
        )
        found = replace(found, supports=() if found.supports == ("all",) else found.supports)
    known = _slowest([load_hardware(name) for name in devices])
    links = ask(f"links: {', '.join(Topology)}", str(known.topology if known else Topology.FULL))
    shape = ask("devices along each dimension, such as 4 4", "") if links in MESHES else ""
    rate = f"{known.bandwidth / 1e9:g}" if known else "16"
    delay = f"{known.latency_seconds * 1e6:g}" if known else "5"
    return replace(
        found,
        links=links,
        shape=tuple(_whole(each, "shape") for each in shape.split()),
        link_gb_per_s=_real(ask("one link, one direction, GB/s", rate), "link"),
        link_us=_real(ask("latency of a link, µs", delay), "latency"),
    )


def _slowest(parts: list[Hardware]) -> Links | None:
    """Links of the preset with the fewest bytes a second; None: there is no preset."""
    return min((part.links for part in parts), key=lambda each: each.bandwidth, default=None)


def _own_devices(asked: NewHardware) -> tuple[Device, ...]:
    figures = {"tflops": asked.tflops, "memory_gb": asked.memory_gb,
               "memory_gb_per_s": asked.memory_gb_per_s}  # fmt: skip
    given = [name for name, value in figures.items() if value is not None]
    if asked.kind is None:
        alone = given or [name for name in ("supports", "cannot", "rates") if getattr(asked, name)]
        if alone:
            raise HardwareError(f"hardware new: {_flag(alone[0])} needs --kind, a device's name")
        return ()
    missing = [_flag(name) for name in figures if name not in given]
    if missing:
        raise HardwareError(f"hardware new: --kind {asked.kind} needs {', '.join(missing)}")
    tflops, memory, rate = (float(value or 0.0) for value in figures.values())
    device = Device(
        asked.kind, tflops * 1e12, memory * 1e9, rate * 1e9, asked.launch_us / 1e6,
        supports=asked.supports, cannot=asked.cannot, rates=_rates(asked.rates),
    )  # fmt: skip
    return (device,) * asked.count


def _rates(words: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    found = []
    for word in words:
        name, _, rate = word.partition("=")
        try:
            found.append((name, float(rate) * 1e12))
        except ValueError as error:
            raise HardwareError(
                f"hardware new: --rates {word} must be a type and TFLOP/s, such as bfloat16=312"
            ) from error
    return tuple(found)


def _links(asked: NewHardware, known: Links | None) -> Links:
    """The links asked for; without any words on them those of the only preset, groups included."""
    if asked.links not in list(Topology):
        words = [str(each) for each in Topology]
        raise HardwareError(
            f"hardware new: unknown links {asked.links!r}{nearest(asked.links, words)} "
            f"Use {', '.join(words)}"
        )
    said = asked.link_gb_per_s is not None or asked.link_us is not None or asked.shape
    alone = len(asked.devices) == 1 and asked.kind is None
    if known is not None and alone and not said and asked.links == NewHardware.links:
        return known
    if known is None and asked.link_gb_per_s is None:
        raise HardwareError(
            "hardware new: --link-gb-per-s is missing, the rate of one link in GB/s"
        )
    rate = known.bandwidth if known else 0.0
    delay = known.latency_seconds if known else 0.0
    if asked.link_gb_per_s is not None:
        rate = asked.link_gb_per_s * 1e9
    if asked.link_us is not None:
        delay = asked.link_us / 1e6
    return Links(Topology(asked.links), rate, delay, shape=asked.shape)


def _networked(
    asked: NewHardware, name: str, parts: list[Hardware], own: tuple[Device, ...]
) -> Hardware:
    if own or len(parts) < 2:
        raise HardwareError(
            "hardware new: --network-gb-per-s joins hosts, each one of --devices, such as "
            "--devices v100x4 v100x4; describe own devices in a file and name it there"
        )
    if asked.links != NewHardware.links or asked.shape:
        raise HardwareError("hardware new: --network-gb-per-s is for --links full")
    for given, part in zip(asked.devices, parts, strict=True):
        if not part.links.uniform or part.links.topology is not Topology.FULL:
            raise HardwareError(
                f"hardware new: host {given!r} must have equal links between all its devices"
            )
    hosts = [(f"within {n}", part) for n, part in zip(asked.devices, parts, strict=True)]
    network = 1e9 * (asked.network_gb_per_s or 0.0), asked.network_us / 1e6
    return joined_hosts(name, asked.description, hosts, network)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _whole(answer: str, what: str) -> int:
    try:
        return int(answer)
    except ValueError:
        raise HardwareError(f"{what} must be a whole number, not {answer!r}") from None


def _real(answer: str, what: str) -> float:
    try:
        return float(answer)
    except ValueError:
        raise HardwareError(f"{what} must be a number, not {answer!r}") from None


QUESTIONS = frozenset(field.name for field in fields(NewHardware)) - {"name", "description"}
"""Fields of which none is given when a user wants to be asked."""


def says_nothing(asked: NewHardware) -> bool:
    """Return whether no field is given that a question asks for."""
    return all(getattr(asked, name) == getattr(NewHardware(), name) for name in QUESTIONS)
