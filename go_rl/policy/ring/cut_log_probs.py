"""Log-probabilities of drawn cuts, differentiable: `CutDistribution` as the learner sees it.

The cuts of an order are drawn one after the other, each given those before it. With the tables of
`go_rl.solvers.draws.cut_distribution`,

    log p(the piece on chip c from s ends before e) = W[c, e] - log sum of exp W[c, e'],

e' over the ends that are legal. Their sum is the log-probability of the plan, log prod P - log Z;
its gradient by log P is the plan less the marginals of the distribution, which automatic
differentiation finds by running the same sums forwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from go_rl.policy.config import MAX_CHIPS

NONE = -1e30
"""Log-mass of nothing; finite, so that gradients stay so."""
ROWS = (0, 8, 16, 36, MAX_CHIPS)
"""Numbers of chips that windows are made for: each row costs time, each number a compilation; none
where nothing is drawn as cuts."""


class CutWindows(NamedTuple):
    """Windows of the cuts of one order: positions, of ``U`` padded ones the first ``units``."""

    order: Int[Array, "U"]
    """[U] unit at each position."""
    first: Int[Array, "U"]
    """[U] first end of a piece that opens at each position."""
    last: Int[Array, "K U"]
    """[K, U] last end on each chip; below `first` where none is legal."""
    units: Int[Array, ""]
    """Positions that exist."""
    final: Bool[Array, "K"]
    """[K] chips on which the order may end."""


def blank_windows(batch: int, units: int, chips: int) -> CutWindows:
    """Return NumPy arrays to be filled, [B, ...] with ``units`` padded units and the least of
    `ROWS` that holds ``chips``; nothing is legal."""
    every = np.broadcast_to(np.arange(units, dtype=np.int32), (batch, units))
    rows = next(rows for rows in ROWS if rows >= chips)
    last = np.full((batch, rows, units), -1, np.int32)
    final = np.zeros((batch, rows), np.bool_)
    arrays: Any = (every.copy(), every + 1, last, np.zeros(batch, np.int32), final)
    return CutWindows(*arrays)


def cut_log_probs(
    log_probs: Float[Array, "U C"], windows: CutWindows, cuts: Int[Array, "K1"]
) -> Float[Array, "K"]:
    """Return [K] the log-probability of each piece given those before it; 0 of what is not there.

    Args:
        log_probs: [U, C] of chips, by unit; the first ``K`` of them count.
        windows: of the order that was cut, for ``K`` chips.
        cuts: [K + 1] the first position of each piece, then ``units`` to the end.
    """
    count = log_probs.shape[0]
    chips = len(windows.final)
    along = log_probs[windows.order, :chips].T * (jnp.arange(count) < windows.units)
    prefix = jnp.pad(jnp.cumsum(along, axis=1), ((0, 0), (1, 0)))
    at_end = jnp.arange(count + 1) == windows.units

    def piece(beyond: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        prefix, last, final, start, end = row
        ends = jnp.where(at_end, jnp.where(final, 0.0, NONE), beyond)
        mass = jnp.maximum(prefix + ends, NONE)
        total = window_log_sums(mass, windows.first, last)
        opens = jnp.append(jnp.maximum(total - prefix[:-1], NONE), NONE)
        chosen = mass[end] - total[jnp.minimum(start, count - 1)]
        return opens, jnp.where(start < end, chosen, 0.0)

    rows = (prefix, windows.last, windows.final, cuts[:-1], cuts[1:])
    opens = jnp.full(count + 1, NONE)
    return jax.lax.scan(jax.checkpoint(piece), opens, rows, reverse=True)[1]


def window_log_sums(
    values: Float[Array, "V"], first: Int[Array, "U"], last: Int[Array, "U"]
) -> Float[Array, "U"]:
    """Return [U] log-sum-exp of values[first..last]; `NONE` of an empty window.

    A window is cut into blocks whose lengths are the binary digits of its own, the shortest first;
    the sums of all blocks of one length follow from those of half of it.
    """
    length = jnp.maximum(last - first + 1, 0)
    at, total, table = jnp.where(length > 0, first, 0), jnp.full(first.shape, NONE), values
    for level in range(len(values).bit_length()):
        size = 1 << level
        taken = (length >> level) & 1
        block = table[jnp.minimum(at, len(values) - 1)]
        total = jnp.where(taken == 1, jnp.logaddexp(total, block), total)
        at = at + taken * size
        beyond = jnp.full(min(size, len(values)), NONE)
        table = jnp.logaddexp(table, jnp.concatenate([table[size:], beyond]))
    return total
