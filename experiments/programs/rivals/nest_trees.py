"""`NestTree`: the whole abstract syntax tree of a loop nest, as a recursive network walks it.

The walk is a list of events: a *leaf* is read inside the loop that is open, or a *close* ends a
loop, whose embedding goes to the loop around. Programs of one tree share their events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64

from go_rl.core import TrainingError
from go_rl.core.files.strict_json import parse_json
from go_rl.costs.programs.learn.examples import ProgramInputs

NOTHING, LEAF, CLOSE = 0, 1, 2
"""Kinds of events."""
EVENT_SIZES = (16, 32, 64, 128, 256)
LEVEL_SIZES = (8, 16, 32)
"""To which events and levels are filled up, so that few shapes are compiled."""
Shape = tuple[tuple[int, bool], ...]
"""Depth and whether a statement, of each node in pre-order."""


@dataclass(frozen=True, eq=False)
class NestTree:
    """A tree and where its vectors are."""

    shape: Shape
    events: Int32[np.ndarray, "T 3"]
    """[T, 3] kind, level (open loops around; 0: outside of all) and number of the leaf."""
    positions: Int64[np.ndarray, "L"]
    """[L] position of each leaf in the pre-order serialisation (`CompactAst.ordering`)."""

    @property
    def levels(self) -> int:
        """Largest number of open loops, and the outside."""
        return int(self.events[:, 1].max()) + 1


def nest_trees(inputs: ProgramInputs, who: str) -> tuple[dict[Shape, NestTree], list[Shape]]:
    """Return the distinct trees of programs, and that of each program.

    Args:
        inputs: programs.
        who: reads them, for the message.

    Raises:
        TrainingError: loop nests are not known.
    """
    if not inputs.nests:
        raise TrainingError(
            f"{who} reads whole loop nests, and of these programs only features are known; use "
            "records of go-rl measure programs"
        )
    numbers, place = np.unique(inputs.nest, return_inverse=True)
    shapes = [_shape(parse_json(inputs.nests[number])) for number in numbers.tolist()]
    trees = {shape: tree_of(shape) for shape in dict.fromkeys(shapes)}
    return trees, [shapes[i] for i in place.tolist()]


def tree_of(shape: Shape) -> NestTree:
    """Return the events of a tree: its loops close when the next node is outside of them."""
    events: list[tuple[int, int, int]] = []
    positions: list[int] = []
    loops = 0
    for node, (depth, statement) in enumerate(shape):
        events.extend((CLOSE, level, 0) for level in range(loops, depth, -1))
        loops = depth
        if statement:
            events.append((LEAF, depth, len(positions)))
            positions.append(node + len(positions))
        else:
            loops += 1
    events.extend((CLOSE, level, 0) for level in range(loops, 0, -1))
    return NestTree(shape, np.array(events, np.int32), np.array(positions, np.int64))


def _shape(document: Any) -> Shape:
    """Of a nest's JSON (`go_rl.costs.programs.nests.nest_json`), which was checked when it was
    read."""
    return tuple(
        (node["d"], True) if isinstance(node, dict) else (node[0], False)
        for node in document["nodes"]
    )
