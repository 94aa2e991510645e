"""``go-rl graph``: what a model looks like as an operator graph."""

from __future__ import annotations

from pathlib import Path

from go_rl.cli.configuration import Graph
from go_rl.cli.console import console, print_json, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.partition import read
from go_rl.core import OpGraph, ReadError
from go_rl.report.graph_document import graph_document
from go_rl.report.graph_summary import facts, histogram


def run_graph(config: Graph) -> int:
    """Run the command; returns the exit code."""
    if config.save is not None:
        check_file(Path(config.save), "--save")
    with working(f"reading {config.source.model}"):
        graph = read(config.source)
        if config.save is not None:
            _save(graph, Path(config.save))
    if config.json:
        print_json(graph_document(graph))
        return OK
    out = console()
    out.print(facts(graph))
    out.print(histogram(graph))
    for note in graph.meta.get("notes", ()):
        out.print(f"note: {note}", markup=False, soft_wrap=True)
    if config.save is not None:
        out.print(f"written to {config.save}", markup=False, soft_wrap=True)
    return OK


def _save(graph: OpGraph, path: Path) -> None:
    from go_rl.readers import save_graph

    try:
        save_graph(graph, path)
    except OSError as error:
        raise ReadError(f"{path}: cannot be written ({error.strerror})") from error
