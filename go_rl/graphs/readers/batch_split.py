"""Division of a batch into micro-batches, for readers that write a training iteration anew."""

from __future__ import annotations

import re
from collections.abc import Iterable

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.graph_builder import GraphBuilder

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
    names = (str(builder.node(number).name) for number in range(len(builder)))
    return [_BATCH_STATISTICS] * any(map(_BATCH_NORM.search, names))
