"""The arrays that the solver's kernels read (`Network`) and change (`State`).

Letters: ``M`` blocks (sets of nodes that must share a chip), ``k`` chips, ``T`` triples, ``G``
weight groups. A domain is the set of chips a block may still take, one 64-bit word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Network(NamedTuple):
    """One ring problem at the level of blocks; read-only."""

    chips: int
    pred_ptr: np.ndarray
    """[M + 1] rows of `pred`."""
    pred: np.ndarray
    """[X] predecessors of each block, unique, ascending."""
    succ_ptr: np.ndarray
    """[M + 1] rows of `succ`."""
    succ: np.ndarray
    """[X] successors of each block, unique, ascending."""
    triple: np.ndarray
    """[T, 3] (u, w, v): u -> v is an edge and w lies on another path from u to v."""
    triple_ptr: np.ndarray
    """[M + 1] rows of `triple_of`."""
    triple_of: np.ndarray
    """[3T] the triples in which a block takes part."""
    weight: np.ndarray
    """[M] int64 bytes of a block's own weights."""
    heavy: np.ndarray
    """[H] blocks with weights or groups, heaviest first."""
    group_ptr: np.ndarray
    """[M + 1] rows of `group`."""
    group: np.ndarray
    """[Y] weight groups that a block needs on its chip."""
    group_bytes: np.ndarray
    """[G] int64 bytes of a group, counted once a chip."""
    capacity: np.ndarray
    """[k] int64 bytes of each chip."""
    start: np.ndarray
    """[M] initial domains: pinned blocks, heads and tails."""
    after: np.ndarray
    """[M] int64 how many blocks a block reaches, itself included."""
    triangle: bool
    """The chip-triangle rule binds."""
    all_chips: bool
    """Every chip must be used."""
    memory: bool
    """Weights must fit."""
    spare: int
    """Chips that replicable nodes could fill to satisfy no-skip."""


class State(NamedTuple):
    """What changes during a search; undone through trails."""

    domain: np.ndarray
    """[M]."""
    count: np.ndarray
    """[k] blocks that have the chip in their domain."""
    placed: np.ndarray
    """[k] blocks whose only chip is this and that have been processed."""
    span: np.ndarray
    """[k, k] blocks not yet placed, by smallest and largest chip."""
    lows: np.ndarray
    """[k] blocks whose smallest chip is this."""
    low_weight: np.ndarray
    """[k] own weights of blocks not yet placed, by smallest chip."""
    high_weight: np.ndarray
    """[k] own weights of blocks not yet placed, by largest chip."""
    free: np.ndarray
    """[k] int64 bytes left on each chip."""
    holds: np.ndarray
    """[G] chips that already hold a group."""
    done: np.ndarray
    """[M] the block has been placed and its edges added to the chip graph."""
    done_list: np.ndarray
    """[M] placed blocks in order."""
    paid: np.ndarray
    """[Y] placing the block brought this group to its chip."""
    relation: np.ndarray
    """[5, k] chip graph: 0 direct successors, 1 descendants, 2 ancestors, 3 forbidden new
    successors, 4 forbidden new predecessors."""
    relation_trail: np.ndarray
    """[?, 5, k] saved `relation`."""
    trail_block: np.ndarray
    """[M * k] blocks whose domain shrank."""
    trail_domain: np.ndarray
    """[M * k] the domains before."""
    queue: np.ndarray
    """[M] ring buffer of blocks to propagate."""
    queued: np.ndarray
    """[M]."""
    cursor: np.ndarray
    """[8] heads of the trails and queue, and the clash: see `propagation`."""


def new_state(net: Network) -> State:
    """Allocate a state; `propagation.reset` fills it."""
    blocks, chips = len(net.weight), net.chips
    saved = chips * (chips - 1) // 2 + 2 if net.triangle else 1
    word, flag = np.int64, np.bool_
    return State(
        domain=np.zeros(blocks, word),
        count=np.zeros(chips, word),
        placed=np.zeros(chips, word),
        span=np.zeros((chips, chips), word),
        lows=np.zeros(chips, word),
        low_weight=np.zeros(chips, word),
        high_weight=np.zeros(chips, word),
        free=np.zeros(chips, word),
        holds=np.zeros(len(net.group_bytes), word),
        done=np.zeros(blocks, flag),
        done_list=np.zeros(blocks, word),
        paid=np.zeros(len(net.group), flag),
        relation=np.zeros((5, chips), word),
        relation_trail=np.zeros((saved, 5, chips), word),
        trail_block=np.zeros(blocks * chips + 1, word),
        trail_domain=np.zeros(blocks * chips + 1, word),
        queue=np.zeros(blocks, word),
        queued=np.zeros(blocks, flag),
        cursor=np.zeros(8, word),
    )
