"""Updated weights on their way to the micro-batches that read them next.

Micro-batches may run on different devices, each with a copy of a weight. One of them is updated;
the others must get it before the next iteration, and a plan must pay for that, or copies of weights
would be free. So the update shares a device with the readers of micro-batch 0, those of each other
micro-batch share one too, and a node without cost stands there that reads the updated weight: it
pays for the transfer alone, and for none on the device of the update.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from scipy.cluster.hierarchy import DisjointSet

from go_rl.core.errors import ReadError
from go_rl.core.graph.micro_batch import WHOLE, micro_batch_ending, micro_batch_of
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

RETURN = "weight_return"
"""Operator that stands where an updated weight is read next."""
Readers = Mapping[str, Mapping[int, list[int]]]
"""Nodes that read a weight, by its name and their micro-batch."""


def add_weight_returns(builder: GraphBuilder) -> None:
    """Add the ways back of updated weights, and the colocation that they need, to a graph whose
    nodes are named by micro-batches. A graph without updates stays as it is."""
    groups: list[list[int]] = []
    for weight, by_part in _readers(builder).items():
        if WHOLE not in by_part or 0 not in by_part:
            continue
        updates = by_part[WHOLE]
        size = builder.node(updates[-1]).weight_arrays[weight]
        for part, members in sorted(by_part.items()):
            if part == 0:
                groups.append([*updates, *members])
            elif part != WHOLE:
                number = builder.add_node(_way_back(weight, part))
                builder.add_edge(updates[-1], number, size)
                groups.append([number, *members])
    if groups:
        _colocate(builder, groups)


def _readers(builder: GraphBuilder) -> Readers:
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, node in enumerate(builder.nodes):
        for weight in node.weight_arrays:
            found[weight][micro_batch_of(node.name)].append(number)
    return found


def _way_back(weight: str, part: int) -> Node:
    return Node(
        name=f"{RETURN}/{weight}{micro_batch_ending(part)}",
        op_type=RETURN,
        kind=OpKind.CONSTANT,
        source=f"{weight} for micro-batch {part} of the next iteration",
    )


def _colocate(builder: GraphBuilder, groups: Iterable[list[int]]) -> None:
    """Give a class to each set of groups that overlap."""
    together = DisjointSet(range(len(builder)))
    for first, *others in groups:
        for other in others:
            together.merge(first, other)
    classes = sorted(sorted(s) for s in together.subsets() if len(s) > 1)
    for label, members in enumerate(classes):
        for number in members:
            builder.replace_node(number, replace(builder.node(number), colocation=label))


_BATCH_NORM = re.compile(r"(?i)batch_?norm.*@\d+$")
"""Names of nodes of batch normalisation in a micro-batch."""
_BATCH_STATISTICS = (
    "batch normalisation takes its statistics of each micro-batch, as GPipe does: updates differ "
    "from those of the whole batch"
)
"""Note for users on such a graph."""


def part_of_batch(extents: Iterable[tuple[str, int]], count: int, otherwise: str) -> int:
    """Return the size of a micro-batch.

    Args:
        extents: name of each array that is split, and the size of its batch axis.
        count: micro-batches.
        otherwise: said of arrays that have no batch.

    Raises:
        ReadError: no array has a batch, two have different ones, or it does not divide.
    """
    sizes: dict[int, str] = {}
    for what, size in extents:
        sizes.setdefault(size, what)
    if len(sizes) != 1:
        found = "; ".join(f"{size}: {what}" for size, what in sizes.items())
        raise ReadError(
            "micro-batches need arrays with one batch axis of the same size, the first of all that "
            f"are not weights; found {found or 'none'}. {otherwise}"
        )
    (size,) = sizes
    if size % count:
        divisors = [n for n in range(1, min(size, 1024) + 1) if size % n == 0]
        raise ReadError(
            f"a batch of {size} does not divide into {count} micro-batches of the same size; "
            f"choose {', '.join(map(str, divisors))}, or another batch"
        )
    return size // count


def statistics_notes(builder: GraphBuilder) -> list[str]:
    """Return notes for users on a graph whose nodes are named by micro-batches."""
    found = any(_BATCH_NORM.search(str(node.name)) for node in builder.nodes)
    return [_BATCH_STATISTICS] * found
