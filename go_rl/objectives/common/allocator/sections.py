"""Lifetimes as ranges of *sections*: the steps at which a locally largest set of buffers is live.

Two buffers overlap in time exactly if they share a section, and live bytes peak in one, so the
search looks at nothing else (Moffitt, MiniMalloc, ASPLOS 2023, section 4, less its dominated
sections).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from go_rl.objectives.common.allocator.buffers import Buffers


@dataclass(frozen=True, eq=False)
class Sections:
    """The inclusive range of sections in which each of ``B`` buffers is live."""

    first: Int64[np.ndarray, "B"]
    """[B] first section of each buffer."""
    last: Int64[np.ndarray, "B"]
    """[B] last section, at least ``first``."""
    live_bytes: Int64[np.ndarray, "S"]
    """[S] sum of the sizes of the buffers live in each section."""

    @property
    def independent(self) -> list[Int64[np.ndarray, "b"]]:
        """The buffers of each stretch of sections that no buffer links to the rest."""
        links = covering(self.first, self.last, np.ones_like(self.first), len(self.live_bytes))
        stretch = np.concatenate([[0], np.cumsum(links[:-1] == 0)])[self.first]
        order = np.argsort(stretch, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(stretch[order])) + 1)


def sections_of(buffers: Buffers) -> Sections:
    """Return the sections of at least one buffer. O(B log B).

    A section closes at a death that follows a birth: only there is the live set not contained in
    that of the next step.
    """
    steps, index = np.unique(np.concatenate([buffers.lower, buffers.upper]), return_inverse=True)
    born, dead = index[: len(buffers)], index[len(buffers) :]
    is_birth, is_death = np.zeros(len(steps), bool), np.zeros(len(steps), bool)
    is_birth[born], is_death[dead] = True, True
    # A buffer born at the very step of a death belongs to the next section.
    births = np.cumsum(is_birth) - is_birth
    deaths = np.flatnonzero(is_death)
    since = np.diff(np.concatenate([[0], births[deaths]]))
    closes = np.zeros(len(steps), np.int64)
    closes[deaths] = since > 0
    closed = np.cumsum(closes)
    first, last = closed[born], closed[dead] - 1
    live = covering(first, last + 1, buffers.size, int(closed[-1]) + 1)[:-1]
    return Sections(first, last, live)


def peak_over(
    live_bytes: Int64[np.ndarray, "S"], first: Int64[np.ndarray, "B"], last: Int64[np.ndarray, "B"]
) -> Int64[np.ndarray, "B"]:
    """[B] the largest live bytes over each inclusive range of sections, by a sparse table."""
    level = np.frexp(last - first + 1)[1] - 1
    peak, table = np.zeros(len(first), np.int64), live_bytes
    for k in range(int(level.max()) + 1):
        here = level == k
        peak[here] = np.maximum(table[first[here]], table[last[here] - 2**k + 1])
        table = np.maximum(table[: -(2**k)], table[2**k :])
    return peak


def covering(
    start: Int64[np.ndarray, "B"],
    stop: Int64[np.ndarray, "B"],
    weight: Int64[np.ndarray, "B"],
    n: int,
) -> Int64[np.ndarray, "n"]:
    """[n] the sum of the weights of the half-open ranges that hold each index."""
    change = np.zeros(n, np.int64)
    np.add.at(change, start, weight)
    np.subtract.at(change, stop, weight)
    return np.cumsum(change)
