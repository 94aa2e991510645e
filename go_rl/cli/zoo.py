"""``go-rl zoo``: the frozen graphs of real networks, and one of them."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from go_rl.cli.configuration import ZooList, ZooShow
from go_rl.cli.console import console, print_json
from go_rl.cli.exit_codes import OK
from go_rl.zoo import ZOO_VERSION, ZooEntry, zoo_entry, zoo_graph, zoo_names


def run_zoo(config: ZooList | ZooShow) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, ZooShow):
        return _show(config)
    entries = [zoo_entry(name) for name in zoo_names(config.split, training=True)]
    if config.json:
        print_json({"version": ZOO_VERSION, "graphs": [asdict(entry) for entry in entries]})
        return OK
    table = Table(title=f"{ZOO_VERSION}: {len(entries)} graphs", title_justify="left")
    for column in ("graph", "family", "split", "nodes", "edges", "GFLOP", "weights MB"):
        number = column in ("nodes", "edges", "GFLOP", "weights MB")
        table.add_column(column, justify="right" if number else "left")
    for entry in entries:
        table.add_row(entry.name, entry.family, entry.split, *_sizes(entry))
    console().print(table)
    return OK


def _sizes(entry: ZooEntry) -> tuple[str, ...]:
    gigaflops, megabytes = entry.flops / 1e9, entry.weight_bytes / 1e6
    return f"{entry.nodes:,}", f"{entry.edges:,}", f"{gigaflops:,.2f}", f"{megabytes:,.1f}"


def _show(config: ZooShow) -> int:
    entry = zoo_entry(config.name)
    graph = zoo_graph(config.name)
    if config.json:
        print_json(asdict(entry) | {"version": ZOO_VERSION, "notes": graph.meta.get("notes", [])})
        return OK
    from go_rl.report.graph_summary import facts, histogram

    out = console()
    what = "training step" if entry.training else "inference"
    out.print(f"{ZOO_VERSION}, family {entry.family}, split {entry.split}, {what}", markup=False)
    out.print(facts(graph))
    out.print(histogram(graph))
    out.print(f"digest {entry.digest}", markup=False, soft_wrap=True)
    out.print(f"use it as a model: go-rl partition zoo:{entry.name}", markup=False, soft_wrap=True)
    return OK
