"""``go-rl hardware``: the hardware presets, and what is in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import tyro

from go_rl.cli.console import console, print_json, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core import Hardware, LinkGroup, Links, load_hardware
from go_rl.core.hardware.presets import EXAMPLES
from go_rl.core.hardware.systems import SYSTEMS
from go_rl.report.tables import bytes_text
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


def run(config: HardwareList | HardwareShow) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, HardwareShow):
        return _show(load_hardware(config.hardware), config)
    presets = [load_hardware(name) for name in (*EXAMPLES, *SYSTEMS)]
    if config.json:
        print_json([preset.to_json() for preset in presets])
        return OK
    cells = [(p.name, str(p.links.topology), p.description) for p in presets]
    title = "Presets; any number of chips from 1 to 64"
    table = TextTable(
        title, ("hardware", "links", "what"), cells, words=("links",), prose=("what",)
    )
    print_table(console(), table)
    say_next(console(), "hardware", "show", presets[0].name)
    return OK


def _link_lines(links: Links) -> Iterator[str]:
    """A line for each class of links."""
    yield f"links: {links.topology}, {_rates(links)}"
    for group in links.groups:
        bus = ", one tensor at a time" if group.shared else ""
        yield f"  {group.name}: devices {_sets(group.devices)}, {_rates(group)}{bus}"
    if links.hosts:
        yield f"  one port to all others: devices {_sets(links.hosts)}"


def _rates(links: Links | LinkGroup) -> str:
    return f"{links.bandwidth / 1e9:g} GB/s one way, {links.latency_seconds * 1e6:g} µs"


def _sets(sets: tuple[tuple[int, ...], ...]) -> str:
    return "; ".join(" ".join(map(str, some)) for some in sets)


def _show(shown: Hardware, config: HardwareShow) -> int:
    if config.json:
        print_json(shown.to_json())
        return OK
    heads = ("kind", "chips", "peak TFLOP/s", "memory", "memory GB/s", "launch µs", "host GB/s")
    cells: list[tuple[str, ...]] = []
    for group in shown.to_json()["devices"]:
        rates = (group["memory_bandwidth"] / 1e9, group["launch_seconds"] * 1e6,
                 group["host_bandwidth"] / 1e9)  # fmt: skip
        kind = f"{group['kind']} (CPU)" if group["is_cpu"] else group["kind"]
        peak, memory = f"{group['peak_flops'] / 1e12:,.4g}", bytes_text(group["memory_bytes"])
        cells.append((kind, str(group["count"]), peak, memory, *map("{:,.4g}".format, rates)))
    out = console()
    print_table(out, TextTable(f"{shown.name}: {shown.description}", heads, cells))
    for line in _link_lines(shown.links):
        print_line(out, line)
    width = shown.element_bytes
    print_line(out, f"bytes an element: {f'{width:g}' if width else 'as in the model'}")
    say_next(out, "optimize", EXAMPLE_MODEL, "--hardware", config.hardware)
    return OK
