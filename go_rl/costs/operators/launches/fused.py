"""`fused_launches`: the kernels of a network whose element-wise operators are fused.

A launch joins the one that reads its result if nobody else reads it: chains of element-wise
operators become one kernel, sums and pooling take the chain before them, softmax and layer norm
chains before and after, products and convolutions of a library the chain after them. A kernel of
streams alone is priced by the bytes that enter and leave it; one with a product or a norm as that,
and the bytes that its chain moves beyond.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from go_rl.core import OpGraph, OpKind
from go_rl.core.graph.fusion import MAX_FUSED
from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.launches.launch import BATCH_NORM, Launch, Launches, moved
from go_rl.costs.operators.launches.operator_view import DATA_DEPENDENT
from go_rl.costs.operators.launches.product_launches import DEPTHWISE
from go_rl.costs.operators.tables.operator_rows import ATTENTION, NORMS, PRODUCTS

POINTWISE_KINDS = (OpKind.ELEMENTWISE, OpKind.MOVEMENT, OpKind.INPUT, OpKind.CONSTANT)
HEAVY = (*PRODUCTS, ATTENTION, *NORMS, "rmsnorm", "depthwise")
"""Operators that name the kernel which a chain joins."""
UNKNOWN_KINDS = (OpKind.CONTROL, OpKind.OTHER)
"""Kinds of nodes that no compiler of element-wise chains sees through."""
SUMMING = ("gather", "gradient of a bias", "gradient of scale and shift", "gradient of batch norm",
           "gradient of an embedding")  # fmt: skip
"""Summing or scattering launches without nodes, or with those of a backward pass."""


class LaunchBytes(NamedTuple):
    """Bytes of ``L`` launches."""

    moved: Float64[np.ndarray, "L"]
    """[L] read and written by a stream; of a product its result, which a chain reads."""
    written: Float64[np.ndarray, "L"]
    """[L] of the result."""
    length: Float64[np.ndarray, "L"]
    """[L] elements of a row of a stream."""


def fused_launches(eager: Launches) -> Launches:
    """Return the launches after fusion; each stands for the nodes of all that it joins."""
    group = _groups(eager)
    members: dict[int, list[int]] = {}
    for number, own in enumerate(group):
        members.setdefault(own, []).append(number)
    moves = _moves(eager)
    order = sorted(members, key=lambda own: members[own][-1])
    place = {own: i for i, own in enumerate(order)}
    each = tuple(_joined(eager, moves, members[own]) for own in order)
    before = tuple(
        tuple(sorted({
            place[group[b]] for number in members[own] for b in eager.before[number]
            if place[group[b]] < place[own]
        }))
        for own in order
    )  # fmt: skip
    return Launches(eager.graph, each, before)


def _groups(eager: Launches) -> list[int]:
    """[L] the group of each launch, named by one of its launches."""
    users: list[list[int]] = [[] for _ in eager.each]
    for number, before in enumerate(eager.before):
        for b in before:
            users[b].append(number)
    group = list(range(len(eager)))
    size = [1] * len(eager)
    chain = [_is_pointwise(eager.graph, launch) for launch in eager.each]
    """[L] whether a group is a chain of element-wise operators."""
    for number in reversed(range(len(eager))):
        readers = {group[u] for u in users[number]}
        own = min(readers, default=number)
        if len(readers) != 1 or size[own] + 1 > MAX_FUSED:
            continue
        into_library = any(_is_library(eager.each[u]) for u in users[number])
        if into_library or not _may_join(eager, number, users[number], chain[own]):
            continue
        group[number] = own
        size[own] += 1
        chain[own] = chain[own] and chain[number]
    return group


def _may_join(eager: Launches, number: int, readers: list[int], before_chain: bool) -> bool:
    """Whether a launch may be computed by the kernel of those that read it."""
    launch = eager.each[number]
    if any(_is_unknown(eager.graph, eager.each[n]) for n in (number, *readers)):
        return False
    if launch.op in HEAVY or _is_library(launch):
        return before_chain
    return launch.what not in ("gather", "copy of an operand")


def _is_library(launch: Launch) -> bool:
    """Whether a library has a kernel for a launch: nothing is computed before it there."""
    return launch.op in (*PRODUCTS, ATTENTION) or launch.what == DEPTHWISE


def _is_unknown(graph: OpGraph, launch: Launch) -> bool:
    """Whether a compiler sees neither through a launch nor, until it ran, how large its result
    is."""
    if any(graph.op_type[node] in DATA_DEPENDENT for node in launch.nodes):
        return True
    return bool(np.isin(graph.kind[list(launch.nodes)], UNKNOWN_KINDS).any())


def _is_pointwise(graph: OpGraph, launch: Launch) -> bool:
    """Whether each element follows from one element of each operand, or is copied to its place."""
    if launch.op in HEAVY or launch.what in SUMMING:
        return False
    if launch.what == BATCH_NORM:
        return launch.op in ("mulu", "batchnorm")
    nodes = list(launch.nodes)
    if launch.what == "copy" or not nodes or graph.is_backward[nodes].any():
        return True
    return bool(np.isin(graph.kind[nodes], POINTWISE_KINDS).all()) and bool(
        (graph.kind[nodes] == OpKind.ELEMENTWISE).any()
    )


def _joined(eager: Launches, moves: LaunchBytes, members: list[int]) -> Launch:
    if len(members) == 1:
        return eager.each[members[0]]
    own = [eager.each[m] for m in members]
    nodes = tuple(sorted(n for launch in own for n in launch.nodes))
    num_bytes = float(moves.moved[members].sum()) - _kept(eager, moves, members)
    heavy = next((m for m in members if eager.each[m].op in HEAVY), None)
    names = " + ".join(dict.fromkeys(launch.what for launch in own))
    unlike = any(launch.unlike for launch in own)
    if heavy is None:
        return moved(num_bytes, int(moves.length[members].max()), nodes, names, unlike)
    return replace(
        eager.each[heavy], nodes=nodes, what=names, unlike=unlike,
        extra_bytes=max(0.0, num_bytes - float(moves.moved[heavy])),
    )  # fmt: skip


def _moves(eager: Launches) -> LaunchBytes:
    rows = eager.rows
    written = FLOAT_BYTES * rows.result_elements()
    library = rows.is_any((*PRODUCTS, ATTENTION))
    return LaunchBytes(
        np.where(library, written, rows.streamed_bytes()), written, rows.stream_rows()[1]
    )


def _kept(eager: Launches, moves: LaunchBytes, members: list[int]) -> float:
    """Bytes between the members that no longer travel: results are neither written nor read."""
    read = [b for m in members for b in eager.before[m] if b in set(members)]
    return sum(float(moves.written[b]) * (read.count(b) + 1) for b in set(read))
