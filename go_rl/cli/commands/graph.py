"""``go-rl graph``: what a model looks like as an operator graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.model_arguments import ModelArguments, read
from go_rl.cli.next_command import model_words, say_next
from go_rl.core import OpGraph, ReadError
from go_rl.core.files.whole_file import writing
from go_rl.core.graph.retyped import retyped
from go_rl.report.graph_summary import facts, graph_document, histogram
from go_rl.report.notes import note_lines


@dataclass(frozen=True)
class Graph:
    """Options of ``go-rl graph``."""

    source: ModelArguments
    element_type: str | None = None
    """Converts the floating-point tensors to this type: bfloat16, float16, float8, int8 or
    float32."""
    save: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Write the graph to this .npz file, which every command reads back quickly."""
    json: bool = False
    """Print one JSON document with nodes and edges, and nothing else."""


def run(config: Graph) -> int:
    """Run the command; returns the exit code."""
    if config.save is not None:
        check_file(Path(config.save), "--save", ".npz")
    with working(f"reading {config.source.model}"):
        graph = read(config.source)
        if config.element_type is not None:
            graph = retyped(graph, config.element_type)
        if config.save is not None:
            _save(graph, Path(config.save))
    if config.json:
        print_json(graph_document(graph))
        return OK
    out = console()
    out.print(facts(graph))
    print_table(out, histogram(graph))
    for line in note_lines(graph.meta.get("notes", ())):
        print_line(out, line)
    if config.save is not None:
        print_line(out, f"written to {config.save}")
    model = model_words(config.source) if config.save is None else [config.save]
    say_next(out, "optimize", *model)
    return OK


def _save(graph: OpGraph, path: Path) -> None:
    from go_rl.api.load import save_graph

    with writing(path, ReadError):
        save_graph(graph, path)
