"""What must come before and after a block: sums over all its ancestors and descendants.

Exact sums over a directed acyclic graph need reachability; it is computed for 64 blocks at a time,
one word a node (``E * M / 64`` word operations).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int64
from numba import njit

from go_rl.simulate.bitset import ONE, lowest, members

EXACT_LIMIT = 50_000_000
"""Word operations up to which sums are exact; beyond, a path bound stands in."""


@njit(cache=True)
@no_type_check
def _reach_sums(pred_ptr, pred, value, reverse):
    """[M] sum of ``value`` over a block and all blocks that reach it (or that it reaches)."""
    blocks = len(value)
    total = np.zeros(blocks, np.float64)
    word = np.zeros(blocks, np.int64)
    columns = np.flatnonzero(value > 0)
    for first in range(0, len(columns), 64):
        batch = columns[first : first + 64]
        word[:] = 0
        for j in range(len(batch)):
            word[batch[j]] = ONE << np.int64(j)
        for step in range(blocks):
            v = blocks - 1 - step if reverse else step
            x = word[v]
            for i in range(pred_ptr[v], pred_ptr[v + 1]):
                x |= word[pred[i]]
            word[v] = x
            while x:
                total[v] += value[batch[lowest(x)]]
                x &= x - 1
    return total


@njit(cache=True)
@no_type_check
def _reach_counts(pred_ptr, pred, reverse):
    """[M] how many blocks reach a block (or are reached from it), itself included."""
    blocks = len(pred_ptr) - 1
    total = np.zeros(blocks, np.int64)
    word = np.zeros(blocks, np.int64)
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
    return total


@njit(cache=True)
@no_type_check
def _path_sums(pred_ptr, pred, value, reverse):
    """[M] largest sum of ``value`` over a path that ends (or starts) at a block: a lower bound."""
    blocks = len(value)
    total = np.zeros(blocks, np.float64)
    for step in range(blocks):
        v = blocks - 1 - step if reverse else step
        best = 0.0
        for i in range(pred_ptr[v], pred_ptr[v + 1]):
            best = max(best, total[pred[i]])
        total[v] = best + value[v]
    return total


def sums_before(
    pred_ptr: np.ndarray, pred: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the sum of ``value`` over each block and its ancestors (a lower bound of it on
    graphs too large for the exact sum)."""
    exact = float(np.count_nonzero(value)) * (len(pred) + len(value)) / 64 <= EXACT_LIMIT
    return (_reach_sums if exact else _path_sums)(pred_ptr, pred, value, False)


def sums_after(
    succ_ptr: np.ndarray, succ: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the sum of ``value`` over each block and its descendants; see `sums_before`."""
    exact = float(np.count_nonzero(value)) * (len(succ) + len(value)) / 64 <= EXACT_LIMIT
    return (_reach_sums if exact else _path_sums)(succ_ptr, succ, value, True)


def counts_after(succ_ptr: np.ndarray, succ: np.ndarray) -> Int64[np.ndarray, "M"]:
    """Return [M] how many blocks each block reaches, itself included (a lower bound of it on
    graphs too large to count exactly)."""
    blocks = len(succ_ptr) - 1
    if float(blocks) * (len(succ) + blocks) / 64 <= EXACT_LIMIT:
        return _reach_counts(succ_ptr, succ, True)
    return _path_sums(succ_ptr, succ, np.ones(blocks), True).astype(np.int64)


def counts_before(pred_ptr: np.ndarray, pred: np.ndarray) -> Int64[np.ndarray, "M"]:
    """Return [M] how many blocks reach each block, itself included; see `counts_after`."""
    blocks = len(pred_ptr) - 1
    if float(blocks) * (len(pred) + blocks) / 64 <= EXACT_LIMIT:
        return _reach_counts(pred_ptr, pred, False)
    return _path_sums(pred_ptr, pred, np.ones(blocks), False).astype(np.int64)


def path_sums_before(
    pred_ptr: np.ndarray, pred: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the largest sum of ``value`` over a path that ends at each block."""
    return _path_sums(pred_ptr, pred, value, False)


def path_sums_after(
    succ_ptr: np.ndarray, succ: np.ndarray, value: Float64[np.ndarray, "M"]
) -> Float64[np.ndarray, "M"]:
    """Return [M] the largest sum of ``value`` over a path that starts at each block."""
    return _path_sums(succ_ptr, succ, value, True)
