"""`Split`: the devices of a graph's operators that somebody else chose, to be judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int, Int16, Int64

from go_rl.core import NO_TIED_WEIGHTS, Hardware, OpGraph, SplitError
from go_rl.core.printable import listed
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.infer_devices import filled_in


@dataclass(frozen=True)
class SplitContext:
    """The graph and hardware that a notation is read against."""

    graph: OpGraph
    hardware: Hardware
    where: str
    """Beginning of messages: the file, or the text itself."""

    def error(self, sentence: str) -> SplitError:
        """Return the error that says a sentence about the split."""
        return SplitError(f"{self.where}: {sentence}")


@dataclass(frozen=True, eq=False)
class Split:
    """A device for every node of a graph of ``N`` nodes."""

    notation: str
    """Name of the notation in which it was written."""
    device: Int16[np.ndarray, "N"]
    """[N] device of each node."""
    named: Bool[np.ndarray, "N"]
    """[N] whether the notation itself says so; other nodes follow their producers."""
    unit: Int64[np.ndarray, "N"]
    """[N] smallest part that the notation can move and that the node belongs to; `NOWHERE`: none
    of its own."""
    unit_names: tuple[str, ...]
    """Name of each part."""
    notes: tuple[str, ...] = ()
    """Sentences about what was assumed."""


def split_of(
    setting: SplitContext,
    notation: str,
    known: Int[np.ndarray, "N"],
    unit: Int[np.ndarray, "N"] | None = None,
    unit_names: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Split:
    """Return a split with a device for every node.

    A node that is not named follows the highest device among its producers; inputs and constants,
    and what needs nothing else, the lowest among their readers. Backward nodes follow their readers
    first (`filled_in`).

    Args:
        setting: what is read.
        notation: name of the notation.
        known: [N] devices, `NOWHERE` of nodes that are not named.
        unit: [N] and ``unit_names``: see `Split`; None: nodes move one by one.
        unit_names: see there.
        notes: see there.

    Raises:
        SplitError: no node is named.
    """
    named = known != NOWHERE
    if not named.any():
        raise setting.error(f"names no node of {setting.graph.name!r}")
    loose = replace(setting.graph, **NO_TIED_WEIGHTS)  # weights do not pull their readers together
    device = filled_in(loose, setting.graph.is_fed, known.astype(np.int64)).astype(np.int16)
    if unit is None:
        unit = np.full(len(known), NOWHERE)
    return Split(notation, device, named, unit.astype(np.int64), unit_names,
                 (*notes, *_inherited(setting.graph, named)))  # fmt: skip


def _inherited(graph: OpGraph, named: Bool[np.ndarray, "N"]) -> tuple[str, ...]:
    others = np.flatnonzero(~named & ~graph.is_fed)
    if not others.size:
        return ()
    return (
        f"{len(others)} operators are not named and follow the highest device among their "
        f"producers: {listed_nodes(graph, others)}",
    )


def listed_nodes(graph: OpGraph, nodes: Int[np.ndarray, "M"]) -> str:
    """Return the names of the first nodes, and how many more there are."""
    return listed([graph.names[node] for node in nodes])
