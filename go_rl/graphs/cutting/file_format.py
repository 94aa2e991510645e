"""A file of kernels: a graph file (`go_rl.graphs.readers.save_graph`) that names the kernel of each
node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import ReadError
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.readers import load_graph, save_graph

COUNT, OWNER = "kernels", "kernel"


def save_kernels(kernels: KernelSet, path: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write kernels, at least one, with facts ``about`` them (JSON)."""
    meta = {**(about or {}), COUNT: kernels.num_kernels, OWNER: kernels.kernel.tolist()}
    save_graph(replace(kernels.graph, meta=meta), path)


def load_kernels(path: Path) -> tuple[KernelSet, dict[str, Any]]:
    """Read what `save_kernels` wrote: the kernels, and facts about them.

    Raises:
        ReadError: not such a file, or damaged.
    """
    graph = load_graph(path)
    about = dict(graph.meta)
    try:
        count, owner = int(about.pop(COUNT)), np.array(about.pop(OWNER), np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise ReadError(f"{path}: a graph without kernels; files of kernels name them") from error
    if owner.shape != (graph.num_nodes,) or not ((owner >= 0) & (owner < count)).all():
        raise ReadError(
            f"{path}: damaged: {OWNER!r} names a kernel for each node, in 0..{count - 1}"
        )
    return KernelSet(replace(graph, meta={}), owner, count), about
