"""``go-rl hardware``: the hardware presets, what is in one, and hardware of one's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.api.hardware.new_hardware import NewHardware, ask_for, describe_hardware, says_nothing
from go_rl.api.hardware.this_machine import this_machine
from go_rl.cli.console import console, print_json, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core import MAX_DEVICES, Hardware, HardwareError, LinkGroup, Links, load_hardware
from go_rl.core.hardware.presets import EXAMPLES
from go_rl.core.hardware.systems import SYSTEMS
from go_rl.core.unit_text import bytes_text
from go_rl.report.text_table import TextTable


@dataclass(frozen=True)
class HardwareList:
    """Options of ``go-rl hardware list``."""

    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class HardwareShow:
    """Options of ``go-rl hardware show``."""

    hardware: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME|FILE")]
    """A preset such as ring36 or a100x8, a JSON file, or a plan.json (its hardware)."""
    json: bool = False
    """Print the JSON document that --hardware reads back, and nothing else."""


@dataclass(frozen=True)
class HardwareNew:
    """Options of ``go-rl hardware new``."""

    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    """JSON file to be written, such as mine.json."""
    wanted: NewHardware = field(default_factory=NewHardware)
    force: bool = False
    """Replace a file of this name."""


@dataclass(frozen=True)
class HardwareThis:
    """Options of ``go-rl hardware this``."""

    out: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """JSON file to be written. Default: none."""
    json: bool = False
    """Print the JSON document that --hardware reads back, and nothing else."""
    force: bool = False
    """Replace a file of this name."""


def run(config: HardwareList | HardwareShow | HardwareNew | HardwareThis) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, HardwareShow):
        shown = load_hardware(config.hardware)
        return _json(shown) if config.json else _show(shown, config.hardware)
    if isinstance(config, HardwareNew):
        return _new(config)
    if isinstance(config, HardwareThis):
        return _this(config)
    presets = [load_hardware(name) for name in (*EXAMPLES, *SYSTEMS)]
    if config.json:
        print_json([preset.to_json() for preset in presets])
        return OK
    cells = [(p.name, str(p.links.topology), p.description) for p in presets]
    title = f"Presets; any number of devices from 1 to {MAX_DEVICES}"
    table = TextTable(
        title, ("hardware", "links", "what"), cells, words=("links",), prose=("what",)
    )
    print_table(console(), table)
    say_next(console(), "hardware", "show", presets[0].name)
    return OK


def _link_lines(links: Links) -> Iterator[str]:
    """A line for each class of links."""
    grid = f" of {' x '.join(map(str, links.shape))}" if links.shape else ""
    yield f"links: {links.topology}{grid}, {_rates(links)}"
    for group in links.groups:
        bus = ", one tensor at a time" if group.shared else ""
        yield f"  {group.name}: devices {_sets(group.devices)}, {_rates(group)}{bus}"
    if links.hosts:
        yield f"  one port to all others: devices {_sets(links.hosts)}"


def _rates(links: Links | LinkGroup) -> str:
    return f"{links.bandwidth / 1e9:g} GB/s one way, {links.latency_seconds * 1e6:g} µs"


def _sets(sets: tuple[tuple[int, ...], ...]) -> str:
    return "; ".join(" ".join(map(str, some)) for some in sets)


def _support_lines(shown: Hardware) -> Iterator[str]:
    """A line for each kind that cannot run everything."""
    for device in dict.fromkeys(shown.devices):
        if device.supports:
            yield f"{device.kind} supports only: {', '.join(device.supports)}"
        if device.cannot:
            yield f"{device.kind} cannot run: {', '.join(device.cannot)}"
        if device.rates:
            said = ", ".join(f"{name} {rate / 1e12:,.4g}" for name, rate in device.rates)
            yield f"{device.kind}, products in other types than float32, TFLOP/s: {said}"


def _new(config: HardwareNew) -> int:
    out, wanted = _target(config.out, config.force), config.wanted
    if says_nothing(wanted):
        if not sys.stdin.isatty():
            raise HardwareError(
                "hardware new: name the devices, such as --devices a100x4 (go-rl hardware new "
                "--help); questions are asked on a terminal only"
            )
        wanted = ask_for(wanted, _ask)
    hardware = describe_hardware(replace(wanted, name=wanted.name or out.stem))
    hardware.save(out)
    print_line(console(), f"written to {out}")
    return _show(hardware, str(out))


def _this(config: HardwareThis) -> int:
    out = None if config.out is None else _target(config.out, config.force)
    hardware, guesses = this_machine()
    if out is not None:
        hardware.save(out)
    if config.json:
        return _json(hardware)
    for guess in guesses:
        print_line(console(), guess)
    if out is None:
        print_line(console(), "not written; --out FILE writes it, to be corrected by hand")
    return _show(hardware, None if out is None else str(out))


def _target(name: str, force: bool) -> Path:
    path = Path(name)
    if path.suffix != ".json":
        raise HardwareError(f"{name}: a hardware file's name must end in .json")
    if path.exists() and not force:
        raise HardwareError(f"{name}: there is such a file; name another, or give --force")
    return path


def _ask(question: str, default: str) -> str:
    shown = f"{question} [{default}]: " if default else f"{question}: "
    try:
        return input(shown).strip() or default
    except EOFError:
        raise HardwareError("hardware new: the answers ended; nothing is written") from None


def _json(shown: Hardware) -> int:
    print_json(shown.to_json())
    return OK


def _show(shown: Hardware, name: str | None) -> int:
    """Print devices and links; ``name``: by which other commands know the hardware."""
    heads = ("kind", "devices", "peak TFLOP/s", "memory", "memory GB/s", "launch µs", "host GB/s")
    cells: list[tuple[str, ...]] = []
    for group in shown.to_json()["devices"]:
        rates = (group["memory_bandwidth"] / 1e9, group["launch_seconds"] * 1e6,
                 group["host_bandwidth"] / 1e9)  # fmt: skip
        kind = f"{group['kind']} (CPU)" if group["is_cpu"] else group["kind"]
        peak, memory = f"{group['peak_flops'] / 1e12:,.4g}", bytes_text(group["memory_bytes"])
        cells.append((kind, str(group["count"]), peak, memory, *map("{:,.4g}".format, rates)))
    out = console()
    print_table(out, TextTable(f"{shown.name}: {shown.description}", heads, cells))
    for line in (*_link_lines(shown.links), *_support_lines(shown)):
        print_line(out, line)
    width = shown.element_bytes
    print_line(out, f"bytes an element: {f'{width:g}' if width else 'as in the model'}")
    if name is None:
        say_next(out, "hardware", "this", "--out", "this.json")
    else:
        say_next(out, "optimize", EXAMPLE_MODEL, "--hardware", name)
    return OK
