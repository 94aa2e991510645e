"""Freeze the zoo: trace every recipe and write its graph and the index.

``python -m go_rl.graphs.zoo.freeze`` writes again whatever has changed; ``--missing`` traces only
what is not frozen yet, ``--only NAME ...`` only these; ``--prune`` first drops graphs without a
recipe and states today's split; ``--check`` writes nothing and fails on a change. The same recipe
under the same versions of JAX, flax and Keras gives the same graph, but for `KEPT`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from go_rl.core import OpGraph, ZooError, check_graph
from go_rl.core.errors import nearest
from go_rl.core.files.whole_file import write_text
from go_rl.graphs.readers.archive import load_graph, save_graph
from go_rl.graphs.readers.model_options import with_trips
from go_rl.graphs.zoo.index import (
    FOLDER,
    INDEX,
    ZooEntry,
    graph_path,
    index_text,
    read_index,
    split_of,
)
from go_rl.graphs.zoo.models.building import ZooModel

UNROLL_LIMIT = 200_000
"""Every loop of the zoo is written out, also the 8-layer GNMT's."""
KEPT = "flops", "bytes_accessed", "tied_node", "tied_array", "tied_bytes"
"""Fields that stay as they were frozen although the JAX reader reads them better since then (FLOP
of reductions, ties of arrays up to 1 KiB): published scores rest on them."""


def trace_entry(model: ZooModel, micro_batches: int = 1) -> OpGraph:
    """Trace one recipe and check its graph.

    Raises:
        ReadError: its batch does not divide into this many micro-batches.
    """
    from go_rl.graphs.readers.jax.inline import JaxOptions
    from go_rl.graphs.readers.jax.reader import trace_jax
    from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches

    function, args, weights = model.build()
    if micro_batches > 1:
        function = in_micro_batches(function, args, weights, micro_batches)
    options, dims = JaxOptions(unroll_limit=UNROLL_LIMIT), with_trips({}, None, micro_batches)
    graph = trace_jax(function, *args, weights=weights, name=model.name, options=options, dims=dims)
    check_graph(graph)
    return graph


def entry_of(model: ZooModel, graph: OpGraph) -> ZooEntry:
    """Return the line of the index for a traced recipe."""
    return ZooEntry(
        name=model.name,
        family=model.family,
        split=split_of(model.name, model.family, model.training),
        training=model.training,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        flops=float(graph.flops.sum()),
        weight_bytes=graph.held_weights.total(np.ones(graph.num_nodes, np.bool_)),
        digest=graph.digest,
    )


def freeze(models: Sequence[ZooModel], folder: Path = FOLDER) -> list[str]:
    """Trace recipes, write the graphs that changed, and bring the index up to date.

    Each graph is written aside and renamed, then the index, so that a stopped run leaves whole
    graphs and an index of them. Returns the names of the graphs that changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    changed = []
    for model in models:
        graph = trace_entry(model)
        fresh = not _is_frozen(graph, model.name, folder)
        if fresh:
            save_graph(graph, graph_path(folder, model.name))
            changed.append(model.name)
        known = _index(folder)
        entry = entry_of(model, graph) if fresh else entry_split(known[model.name], model)
        _write(folder, (known | {model.name: entry}).values())
        word = "frozen" if fresh else "as before"
        print(f"{model.name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {word}")
        sys.stdout.flush()
    return changed


def changed_models(models: Sequence[ZooModel]) -> list[str]:
    """Return the recipes whose graph differs from the frozen one beyond `KEPT`; writes nothing."""
    return [m.name for m in models if not _is_frozen(trace_entry(m), m.name, FOLDER)]


def _is_frozen(graph: OpGraph, name: str, folder: Path) -> bool:
    """Whether a folder has this graph under a name, but for `KEPT`."""
    path = graph_path(folder, name)
    if name not in _index(folder) or not path.exists():
        return False
    frozen = load_graph(path)
    return replace(graph, **{f: getattr(frozen, f) for f in KEPT}).digest == frozen.digest


def prune(models: Sequence[ZooModel], folder: Path = FOLDER) -> None:
    """Drop graphs without a recipe, and refresh the split that the index states."""
    index, known = _index(folder), {m.name: m for m in models}
    for path in folder.glob("*.npz"):
        if path.stem not in known:
            path.unlink()
    kept = [entry_split(e, known[e.name]) for e in index.values() if e.name in known]
    _write(folder, kept)


def entry_split(entry: ZooEntry, model: ZooModel) -> ZooEntry:
    """Return the entry with the family and split of today."""
    split = split_of(model.name, model.family, model.training)
    return replace(entry, family=model.family, training=model.training, split=split)


def _write(folder: Path, entries: Iterable[ZooEntry]) -> None:
    write_text(folder / INDEX, index_text(entries))
    read_index.cache_clear()


def _index(folder: Path) -> dict[str, ZooEntry]:
    return dict(read_index(folder)) if (folder / INDEX).exists() else {}


def _chosen(models: Sequence[ZooModel], only: Sequence[str], missing: bool) -> list[ZooModel]:
    names = [m.name for m in models]
    for name in only:
        if name not in names:
            raise ZooError(f"no recipe is called {name!r}{nearest(name, names)}")
    present = set(_index(FOLDER)) if missing else set()
    frozen = {name for name in present if graph_path(FOLDER, name).exists()}
    return [m for m in models if (not only or m.name in only) and m.name not in frozen]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m go_rl.graphs.zoo.freeze", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="only these graphs")
    parser.add_argument("--missing", action="store_true", help="only graphs not frozen yet")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--prune", action="store_true", help="drop graphs without a recipe")
    arguments = parser.parse_args(argv)
    from go_rl.graphs.zoo.models.inventory import ZOO_MODELS

    models = _chosen(ZOO_MODELS, arguments.only, arguments.missing)
    if arguments.check:
        differing = changed_models(models)
        print(f"not as frozen: {', '.join(differing)}" if differing else "all as frozen")
        return 1 if differing else 0
    if arguments.prune:
        prune(ZOO_MODELS)
    freeze(models)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
