"""The arrays that the solver's compiled functions read (`Network`) and change (`State`).

Letters: ``M`` blocks (sets of nodes that must share a chip), ``k`` chips, ``T`` triples, ``G``
weight groups. A domain is the set of chips a block may still take, one 64-bit word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from go_rl.core.compiled_struct import CompiledStruct


@dataclass(frozen=True, eq=False)
class Network(CompiledStruct):
    """One ring problem at the level of blocks; read-only."""

    chips: int
    pred_ptr: Int64[np.ndarray, "rows"]
    """[M + 1] rows of `pred`."""
    pred: Int64[np.ndarray, "X"]
    """[X] predecessors of each block, unique, ascending."""
    succ_ptr: Int64[np.ndarray, "rows"]
    """[M + 1] rows of `succ`."""
    succ: Int64[np.ndarray, "X"]
    """[X] successors of each block, unique, ascending."""
    triple: Int64[np.ndarray, "T 3"]
    """[T, 3] (u, w, v): u -> v is an edge and w lies on another path from u to v."""
    triple_ptr: Int64[np.ndarray, "rows"]
    """[M + 1] rows of `triple_of`."""
    triple_of: Int64[np.ndarray, "parts"]
    """[3T] the triples in which a block takes part."""
    weight: Int64[np.ndarray, "M"]
    """[M] int64 bytes of a block's own weights."""
    heavy: Int64[np.ndarray, "H"]
    """[H] blocks with weights or groups, heaviest first."""
    group_ptr: Int64[np.ndarray, "rows"]
    """[M + 1] rows of `group`."""
    group: Int64[np.ndarray, "Y"]
    """[Y] weight groups that a block needs on its chip."""
    group_bytes: Int64[np.ndarray, "G"]
    """[G] int64 bytes of a group, counted once a chip."""
    capacity: Int64[np.ndarray, "k"]
    """[k] int64 bytes of each chip."""
    start: Int64[np.ndarray, "M"]
    """[M] initial domains: pinned blocks, heads and tails."""
    after: Int64[np.ndarray, "M"]
    """[M] int64 how many blocks a block reaches, itself included."""
    triangle: bool
    """The chip-triangle rule binds."""
    all_chips: bool
    """Every chip must be used."""
    memory: bool
    """Whether weights must fit the memory."""
    spare: int
    """Chips that replicable nodes could fill to satisfy no-skip."""


@dataclass(frozen=True, eq=False)
class State(CompiledStruct):
    """Mutable state of a search; undone through trails."""

    domain: Int64[np.ndarray, "M"]
    """[M] domain of each block, a set of chips."""
    count: Int64[np.ndarray, "k"]
    """[k] blocks that have the chip in their domain."""
    placed: Int64[np.ndarray, "k"]
    """[k] blocks whose only chip is this and that have been processed."""
    span: Int64[np.ndarray, "k k"]
    """[k, k] blocks not yet placed, by smallest and largest chip."""
    lows: Int64[np.ndarray, "k"]
    """[k] blocks whose smallest chip is this."""
    low_weight: Int64[np.ndarray, "k"]
    """[k] own weights of blocks not yet placed, by smallest chip."""
    high_weight: Int64[np.ndarray, "k"]
    """[k] own weights of blocks not yet placed, by largest chip."""
    free: Int64[np.ndarray, "k"]
    """[k] int64 bytes left on each chip."""
    holds: Int64[np.ndarray, "G"]
    """[G] chips that already hold a group."""
    done: Bool[np.ndarray, "M"]
    """[M] the block has been placed and its edges added to the chip graph."""
    done_list: Int64[np.ndarray, "M"]
    """[M] placed blocks in order."""
    paid: Bool[np.ndarray, "Y"]
    """[Y] placing the block brought this group to its chip."""
    relation: Int64[np.ndarray, "5 k"]
    """[5, k] chip graph: 0 direct successors, 1 descendants, 2 ancestors, 3 forbidden new
    successors, 4 forbidden new predecessors."""
    relation_trail: Int64[np.ndarray, "saved 5 k"]
    """[?, 5, k] saved `relation`."""
    trail_block: Int64[np.ndarray, "trail"]
    """[M * k] blocks whose domain shrank."""
    trail_domain: Int64[np.ndarray, "trail"]
    """[M * k] the domains before."""
    queue: Int64[np.ndarray, "M"]
    """[M] ring buffer of blocks to propagate."""
    queued: Bool[np.ndarray, "M"]
    """[M] blocks that wait in the queue."""
    ready: Int64[np.ndarray, "k"]
    """[k] scratch of `chip_counts`: blocks that may fill a chip, by their largest."""
    levels: Int64[np.ndarray, "levels 6"]
    """[M + 1, 6] decisions of `tree_search`: block, chip, domain when drawn, cursors before."""
    cursor: Int64[np.ndarray, "8"]
    """[8] heads of the trails and queue, and the clash: see `propagation`."""


def new_state(net: Network) -> State:
    """Allocate a state; `propagation.fill` gives it its initial domains."""
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
        ready=np.zeros(chips, word),
        levels=np.zeros((blocks + 1, 6), word),
        cursor=np.zeros(8, word),
    )
