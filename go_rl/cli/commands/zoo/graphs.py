"""``go-rl zoo list``, ``show``, ``generate``: the frozen graphs of real networks, one of them, and
random ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from go_rl.api.load import load, save_graph
from go_rl.api.zoo import (
    GENERATED_VERSION,
    ZOO_PREFIX,
    ZOO_VERSION,
    ZooEntry,
    generated,
    zoo_entry,
    zoo_names,
)
from go_rl.cli.console import console, print_json, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import say_next
from go_rl.core import ZooError
from go_rl.report.text_table import TextTable


@dataclass(frozen=True)
class ZooList:
    """Options of ``go-rl zoo list``."""

    split: Literal["train", "validation", "test", "extra", "training-form"] | None = None
    """Only this part of the split (docs/zoo.md)."""
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class ZooShow:
    """Options of ``go-rl zoo show``."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """A graph such as bert-base."""
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class ZooGenerate:
    """Options of ``go-rl zoo generate``."""

    seed: int = 0
    """Seed of the graph, or of the first one."""
    count: int = 1
    """Number of graphs, of successive seeds."""
    save: str | None = None
    """Folder for the graphs, one .npz file each, which every command reads."""
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: ZooList | ZooShow | ZooGenerate) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, ZooShow):
        return _show(config)
    if isinstance(config, ZooGenerate):
        return _generate(config)
    entries = [zoo_entry(name) for name in zoo_names(config.split, training=True)]
    if config.json:
        print_json({"version": ZOO_VERSION, "graphs": [asdict(entry) for entry in entries]})
        return OK
    heads = ("graph", "family", "split", "nodes", "edges", "GFLOP", "weights MB")
    cells = [(entry.name, entry.family, entry.split, *_sizes(entry)) for entry in entries]
    title = f"{ZOO_VERSION}: {len(entries)} graphs"
    print_table(console(), TextTable(title, heads, cells, words=("family", "split")))
    say_next(console(), "zoo", "show", entries[0].name)
    return OK


def _sizes(entry: ZooEntry) -> tuple[str, ...]:
    gigaflops, megabytes = entry.flops / 1e9, entry.weight_bytes / 1e6
    return f"{entry.nodes:,}", f"{entry.edges:,}", f"{gigaflops:,.2f}", f"{megabytes:,.1f}"


def _generate(config: ZooGenerate) -> int:
    if config.count < 1:
        raise ZooError(f"zoo generate: count must be >= 1, not {config.count}")
    folder = None if config.save is None else Path(config.save)
    if folder is not None:
        check_folder(folder, "--save")
        folder.mkdir(parents=True, exist_ok=True)
    made = []
    for seed in range(config.seed, config.seed + config.count):
        model, graph = generated(seed)
        made.append((model, graph))
        if folder is not None:
            save_graph(graph, folder / f"{model.name}.npz")
    if config.json:
        print_json(
            {
                "version": GENERATED_VERSION,
                "graphs": [
                    {"name": model.name, "kind": model.kind, "iteration": model.mode,
                     "nodes": graph.num_nodes, "edges": graph.num_edges,
                     "flops": float(graph.flops.sum()), "digest": graph.digest}
                    for model, graph in made
                ],
            }
        )  # fmt: skip
        return OK
    heads = ("graph", "kind", "iteration", "nodes", "edges", "GFLOP")
    cells = [
        (model.name, model.kind, model.mode, f"{graph.num_nodes:,}", f"{graph.num_edges:,}",
         f"{graph.flops.sum() / 1e9:,.2f}")
        for model, graph in made
    ]  # fmt: skip
    words = ("kind", "iteration")
    print_table(console(), TextTable(f"{GENERATED_VERSION}", heads, cells, words=words))
    say_next(console(), "optimize", f"{ZOO_PREFIX}{made[0][0].name}", "--hardware", "p100x4")
    return OK


def _show(config: ZooShow) -> int:
    entry = zoo_entry(config.name)
    model = f"{ZOO_PREFIX}{entry.name}"
    graph = load(model)
    if config.json:
        print_json(asdict(entry) | {"version": ZOO_VERSION, "notes": graph.meta.get("notes", [])})
        return OK
    from go_rl.report.graph_summary import facts, histogram

    out = console()
    what = "training step" if entry.training else "inference"
    print_line(out, f"{ZOO_VERSION}, family {entry.family}, split {entry.split}, {what}")
    out.print(facts(graph))
    print_table(out, histogram(graph))
    print_line(out, f"digest {entry.digest}")
    say_next(out, "optimize", model)
    return OK
