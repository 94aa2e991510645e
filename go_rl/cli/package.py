"""``go-rl package``: the hardware presets, and what is in one."""

from __future__ import annotations

from rich.table import Table

from go_rl.cli.configuration import PackageList, PackageShow
from go_rl.cli.console import console, print_json
from go_rl.cli.exit_codes import OK
from go_rl.core import Package, package
from go_rl.core.presets import EXAMPLES


def run_package(config: PackageList | PackageShow) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, PackageShow):
        return _show(package(config.package), config.json)
    presets = [package(name) for name in EXAMPLES]
    if config.json:
        print_json([preset.to_json() for preset in presets])
        return OK
    table = Table(title="Presets; any number of chips from 1 to 64", title_justify="left")
    for column in ("package", "links", "what"):
        table.add_column(column)
    for preset in presets:
        table.add_row(preset.name, str(preset.links.topology), preset.description)
    console().print(table)
    return OK


def _show(shown: Package, json: bool) -> int:
    if json:
        print_json(shown.to_json())
        return OK
    table = Table(title=f"{shown.name}: {shown.description}", title_justify="left")
    for column in ("chips", "kind", "peak TFLOP/s", "memory MB", "memory GB/s", "launch µs",
                   "host GB/s"):  # fmt: skip
        table.add_column(column, justify="left" if column == "kind" else "right")
    for group in shown.to_json()["chips"]:
        rates = (group["peak_flops"] / 1e12, group["memory_bytes"] / 1e6,
                 group["memory_bandwidth"] / 1e9, group["launch_seconds"] * 1e6,
                 group["host_bandwidth"] / 1e9)  # fmt: skip
        kind = f"{group['kind']} (CPU)" if group["is_cpu"] else group["kind"]
        table.add_row(str(group["count"]), kind, *(f"{rate:,.4g}" for rate in rates))
    out = console()
    out.print(table)
    links = shown.links
    out.print(
        f"links: {links.topology}, {links.bandwidth / 1e9:g} GB/s one way, "
        f"{links.latency_seconds * 1e6:g} µs"
    )
    width = shown.element_bytes
    out.print(f"bytes an element: {f'{width:g}' if width else 'as in the model'}")
    return OK
