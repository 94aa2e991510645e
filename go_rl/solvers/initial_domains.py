"""Initial domains of the blocks of a ring problem, and conflicts found without any search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64

from go_rl.core import Problem
from go_rl.core.bitset import ALL
from go_rl.core.graph.heads_tails import counts_after, counts_before, sums_after, sums_before

REPLICATED = -1
"""`Blocks.block_of`: the node is copied and belongs to no block."""
Rows = tuple[Int32[np.ndarray, "M1"], Int32[np.ndarray, "E"]]
"""[M + 1] offsets and [E] blocks."""


class Blocks(NamedTuple):
    """Nodes that share a chip, and the graph of ``M`` blocks, in topological order."""

    problem: Problem
    block_of: Int32[np.ndarray, "N"]
    """[N] block of each node, or `REPLICATED`."""
    leader: Int32[np.ndarray, "M"]
    """[M] first node of each block."""
    preds: Rows
    succs: Rows
    weight: Int64[np.ndarray, "M"]
    """[M] bytes of weights that belong to the block alone."""


def initial_domains(blocks: Blocks, no_skip: bool) -> tuple[Int64[np.ndarray, "M"], str]:
    """Return [M] bit sets of chips, and why no plan can exist (else empty): from what chips can
    run, from pins, from no-skip and, with memory, from the weights before and after each block."""
    chips = blocks.problem.hardware.num_devices
    everywhere = ALL if chips == 64 else ~(ALL << np.int64(chips))
    domain = np.full(len(blocks.leader), everywhere, np.int64)
    supported = _keep_supported(blocks, domain)
    pinned = _keep_pins(blocks, domain)
    skipping = _keep_reachable(blocks, domain) if no_skip else ""
    full = _keep_room(blocks, domain) if blocks.problem.memory and blocks.weight.any() else ""
    return domain, pinned or supported or skipping or full


def _keep_supported(blocks: Blocks, domain: Int64[np.ndarray, "M"]) -> str:
    """Rule supported: a chip must be able to run all nodes of a block."""
    problem, kept = blocks.problem, np.flatnonzero(blocks.block_of >= 0)
    for c, kind in enumerate(problem.device_kind):
        out = blocks.block_of[kept[~np.isfinite(problem.seconds[kind, kept])]]
        domain[out] &= ~_bit(c)
    if domain.all():
        return ""
    return f"rule supported: no chip can run node {_first_name(blocks, domain)}"


def _keep_pins(blocks: Blocks, domain: Int64[np.ndarray, "M"]) -> str:
    """Nodes that the user fixed."""
    conflict = ""
    for node, chip in blocks.problem.fixed.items():
        block = blocks.block_of[node]
        if block == REPLICATED:
            continue
        domain[block] &= _bit(chip)
        if domain[block] == 0:
            name = blocks.problem.graph.names[node]
            conflict = (
                f"rule colocation: node {name!r} is fixed to chip {chip}, "
                "and a node that must share its chip is fixed to another"
            )
    return conflict


def _keep_reachable(blocks: Blocks, domain: Int64[np.ndarray, "M"]) -> str:
    """Rule no-skip: enough blocks must be left for the chips below (above, if all are used)."""
    chips, count = blocks.problem.hardware.num_devices, len(blocks.leader)
    room_below = count - counts_after(*blocks.succs)
    room_above = count - counts_before(*blocks.preds)
    for c in range(chips):
        out = room_below < c
        if blocks.problem.all_chips:
            out = out | (room_above < chips - 1 - c)
        domain[out] &= ~_bit(c)
    if domain.all():
        return ""
    name = _first_name(blocks, domain)
    return f"rule no-skip: too few nodes can fill the chips before and after node {name}"


def _keep_room(blocks: Blocks, domain: Int64[np.ndarray, "M"]) -> str:
    """Rule memory: the weights that come before and after a block must fit below and above it."""
    room = np.array([c.memory_bytes for c in blocks.problem.hardware.devices])
    before = sums_before(*blocks.preds, blocks.weight.astype(np.float64))
    after = sums_after(*blocks.succs, blocks.weight.astype(np.float64))
    for c in range(len(room)):
        fits = (before <= room[: c + 1].sum()) & (after <= room[c:].sum())
        domain[~(fits & (blocks.weight <= room[c]))] &= ~_bit(c)
    return "" if domain.all() else _no_room(blocks, int(np.flatnonzero(domain == 0)[0]))


def _bit(chip: int) -> np.int64:
    return np.int64(1) << np.int64(chip)


def _first_name(blocks: Blocks, domain: Int64[np.ndarray, "M"]) -> str:
    """Name of the first node whose domain is empty."""
    return repr(blocks.problem.graph.names[blocks.leader[int(np.flatnonzero(domain == 0)[0])]])


def _no_room(blocks: Blocks, block: int) -> str:
    problem, weight = blocks.problem, blocks.weight
    node = blocks.leader[block]
    name, total = problem.graph.names[node], sum(c.memory_bytes for c in problem.hardware.devices)
    if weight.sum() > total:
        return (
            f"rule memory: all weights together are {weight.sum() / 1e6:.1f} MB, the chips of "
            f"{problem.hardware.name!r} hold {total / 1e6:.1f} MB"
        )
    return (
        f"rule memory: no chip can take node {name!r} with {weight[block] / 1e6:.1f} MB of weights "
        f"and all that must come before and after it ({weight.sum() / 1e6:.1f} MB in all, "
        f"{total / 1e6:.1f} MB of memory)"
    )


def squeezed(blocks: Blocks) -> str:
    """Return the edge whose ends and all between them have more weights than two chips hold, as a
    sentence; empty if there is none."""
    problem, leader, weight = blocks.problem, blocks.leader, blocks.weight
    preds, succs = blocks.preds, blocks.succs
    room = 2 * max(c.memory_bytes for c in problem.hardware.devices)
    ends = np.repeat(np.arange(len(leader)), np.diff(succs[0]))
    if weight.sum() <= room or not ends.size:
        return ""
    own = weight.astype(np.float64)
    # |between| >= |after u| + |before v| - |all|
    between = sums_after(*succs, own)[ends] + sums_before(*preds, own)[succs[1]] - own.sum()
    worst = int(between.argmax())
    if between[worst] <= room:
        return ""
    u, v = (problem.graph.names[leader[b]] for b in (ends[worst], succs[1][worst]))
    return (
        f"rules triangle and memory: the edge {u!r} -> {v!r} ties all nodes between its ends to "
        f"two chips; their weights are at least {between[worst] / 1e6:.1f} MB, two chips hold "
        f"{room / 1e6:.1f} MB (the default rules lift this)"
    )


def too_few(blocks: Blocks) -> str:
    """Return the sentence that there are fewer blocks than chips."""
    problem, block_of, leader = blocks.problem, blocks.block_of, blocks.leader
    sizes = np.bincount(block_of[block_of >= 0])
    largest = int(sizes.argmax())
    names = [repr(problem.graph.names[n]) for n in np.flatnonzero(block_of == largest)[:3]]
    return (
        f"rule no-skip: colocation and acyclicity leave {len(leader)} blocks for "
        f"{problem.hardware.num_devices} chips; the largest ties {sizes[largest]} nodes together "
        f"({', '.join(names)}, ...)"
    )
