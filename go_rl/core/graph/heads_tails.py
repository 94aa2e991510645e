"""Work before and after a block: sums over all its ancestors and descendants.

Exact sums over a directed acyclic graph need reachability; it is computed for 64 blocks at a time,
one word a node (``E * M / 64`` word operations).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core.bitset import ONE, lowest, members
from go_rl.core.compiled_struct import compiled

EXACT_LIMIT = 50_000_000
"""Word operations up to which sums are exact; beyond, a path bound stands in."""


@compiled
@no_type_check
def _reach_sums(pred_ptr, pred, value, columns, reverse, word, total) -> None:
    """Add to [M] total the ``value`` of a block and of all blocks that reach it (or that it
    reaches). ``columns`` are the blocks with a value; [M] word is scratch."""
    blocks = len(value)
    for first in range(0, len(columns), 64):
        for v in range(blocks):
            word[v] = 0
        for j in range(first, min(first + 64, len(columns))):
            word[columns[j]] = ONE << np.int64(j - first)
        for step in range(blocks):
            v = blocks - 1 - step if reverse else step
            x = word[v]
            for i in range(pred_ptr[v], pred_ptr[v + 1]):
                x |= word[pred[i]]
            word[v] = x
            while x:
                total[v] += value[columns[first + lowest(x)]]
                x &= x - 1


@compiled
@no_type_check
def _reach_counts(pred_ptr, pred, reverse, word, total) -> None:
    """Add to [M] total how many blocks reach a block (or are reached from it), itself included;
    [M] word holds zeros."""
    blocks = len(pred_ptr) - 1
    for first in range(0, blocks, 64):
        begin = blocks - first - 64 if reverse else first
        for step in range(max(first, 0), blocks):
            v = blocks - 1 - step if reverse else step
            own = v - begin
            x = ONE << np.int64(own) if 0 <= own < 64 else np.int64(0)
            for i in range(pred_ptr[v], pred_ptr[v + 1]):
                x |= word[pred[i]]
            word[v] = x
            total[v] += members(x)
        for step in range(first, min(first + 64, blocks)):
            word[blocks - 1 - step if reverse else step] = 0


@compiled
@no_type_check
def _path_sums(pred_ptr, pred, value, reverse, total) -> None:
    """Write [M] the largest sum of ``value`` over a path that ends (or starts) at a block."""
    blocks = len(value)
    for step in range(blocks):
        v = blocks - 1 - step if reverse else step
        best = 0.0
        for i in range(pred_ptr[v], pred_ptr[v + 1]):
            best = max(best, total[pred[i]])
        total[v] = best + value[v]


def _as_words(
    ptr: np.ndarray, ids: np.ndarray
) -> tuple[Int64[np.ndarray, "rows"], Int64[np.ndarray, "edges"]]:
    """Return both as the one type that functions are compiled for."""
    return np.ascontiguousarray(ptr, np.int64), np.ascontiguousarray(ids, np.int64)


def _sums(
    ptr: np.ndarray, ids: np.ndarray, value: Float64[np.ndarray, "M"], reverse: bool
) -> Float64[np.ndarray, "M"]:
    columns = np.flatnonzero(value > 0)
    if float(np.count_nonzero(value)) * (len(ids) + len(value)) / 64 > EXACT_LIMIT:
        return _paths(ptr, ids, value, reverse)
    total = np.zeros(len(value))
    word = np.zeros(len(value), np.int64)
    ptr, ids = _as_words(ptr, ids)
    _reach_sums(ptr, ids, value, columns, reverse, word, total)
    return total


def _counts(ptr: np.ndarray, ids: np.ndarray, reverse: bool) -> Int64[np.ndarray, "M"]:
    blocks = len(ptr) - 1
    if float(blocks) * (len(ids) + blocks) / 64 > EXACT_LIMIT:
        return _paths(ptr, ids, np.ones(blocks), reverse).astype(np.int64)
    total = np.zeros(blocks, np.int64)
    ptr, ids = _as_words(ptr, ids)
    _reach_counts(ptr, ids, reverse, np.zeros(blocks, np.int64), total)
    return total


def _paths(
    ptr: np.ndarray, ids: np.ndarray, value: Float64[np.ndarray, "M"], reverse: bool
) -> Float64[np.ndarray, "M"]:
    total = np.zeros(len(value))
    ptr, ids = _as_words(ptr, ids)
    _path_sums(ptr, ids, value, reverse, total)
    return total


def sums_before(
    pred_ptr: np.ndarray, pred: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the sum of ``value`` over each block and its ancestors (a lower bound of it on
    graphs too large for the exact sum)."""
    return _sums(pred_ptr, pred, value, False)


def sums_after(
    succ_ptr: np.ndarray, succ: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the sum of ``value`` over each block and its descendants; see `sums_before`."""
    return _sums(succ_ptr, succ, value, True)


def counts_after(succ_ptr: np.ndarray, succ: np.ndarray) -> Int64[np.ndarray, "M"]:
    """Return [M] how many blocks each block reaches, itself included (a lower bound of it on
    graphs too large to count exactly)."""
    return _counts(succ_ptr, succ, True)


def counts_before(pred_ptr: np.ndarray, pred: np.ndarray) -> Int64[np.ndarray, "M"]:
    """Return [M] how many blocks reach each block, itself included; see `counts_after`."""
    return _counts(pred_ptr, pred, False)


def path_sums_before(
    pred_ptr: np.ndarray, pred: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the largest sum of ``value`` over a path that ends at each block."""
    return _paths(pred_ptr, pred, value, False)


def path_sums_after(
    succ_ptr: np.ndarray, succ: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the largest sum of ``value`` over a path that starts at each block."""
    return _paths(succ_ptr, succ, value, True)
