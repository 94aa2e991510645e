"""METIS: balanced graph partitioning, without direction, rules or memory.

Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
1998, through pymetis.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np
import pymetis
from jaxtyping import Float64, Int, Int64

from go_rl.core.graph.condensation import undirected_rows

TRIES = 8
"""Seeds that a method tries at most."""
Scale = Callable[[Float64[np.ndarray, "X"]], Float64[np.ndarray, "X"]]
"""Brings values to the range in which METIS wants integers."""


def partition(
    parts: int,
    work: Float64[np.ndarray, "V"],
    ends: Int[np.ndarray, "2 E"],
    traffic: Float64[np.ndarray, "E"],
    scale: Scale,
    seed: int,
) -> Int64[np.ndarray, "V"]:
    """Return [V] part of each vertex: about equal work in each, little traffic between them.

    Args:
        parts: number of parts; some may stay empty.
        work: [V] weight of each vertex.
        ends: [2, E] vertices that exchange data, in either order; equal pairs add up.
        traffic: [E] weight of each pair.
        scale: of work and of traffic; what is below 1 afterwards counts as 1.
        seed: of METIS.
    """
    low, high = ends.min(axis=0), ends.max(axis=0)
    pairs, which = np.unique(low * len(work) + high, return_inverse=True)
    between = _whole(scale(np.bincount(which, traffic, len(pairs)).astype(np.float64)))
    start, neighbour, pair = undirected_rows(*np.divmod(pairs, len(work)), len(work))
    with _silent_output():
        _, part = pymetis.part_graph(
            parts,
            pymetis.CSRAdjacency(start.tolist(), neighbour.tolist()),
            vweights=_whole(scale(work)).tolist(),
            eweights=between[pair].tolist(),
            options=pymetis.Options(seed=seed),
        )
    return np.array(part, np.int64)


def in_order(
    part: Int64[np.ndarray, "V"], place: Int64[np.ndarray, "V"], parts: int
) -> Int64[np.ndarray, "V"]:
    """Return [V] parts numbered by the mean [V] place of their vertices, empty ones last."""
    size = np.bincount(part, minlength=parts)
    mean = np.bincount(part, place, parts) / np.maximum(size, 1)
    rank = np.empty(parts, np.int64)
    rank[np.lexsort((mean, size == 0))] = np.arange(parts)
    return rank[part]


def _whole(values: Float64[np.ndarray, "X"]) -> Int64[np.ndarray, "X"]:
    return np.maximum(1, np.round(values)).astype(np.int64)


_REDIRECTING = Lock()


@contextmanager
def _silent_output() -> Iterator[None]:
    """Drop what C code prints: METIS complains there of each part that stays empty, which is legal
    here, and has no option against it."""
    flush = ctypes.CDLL(None).fflush
    with _REDIRECTING, open(os.devnull, "wb") as nothing:
        sys.stdout.flush()
        flush(None)
        kept = os.dup(1)
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            flush(None)
            os.dup2(kept, 1)
            os.close(kept)
