"""`nest_parts`: a loop nest as the nests that it runs one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from go_rl.costs.programs.nests.index import Index, IndexOperation, LoopVariable
from go_rl.costs.programs.nests.nest import OUTSIDE, Access, ForLoop, LoopNest, Statement

Nodes = tuple[ForLoop | Statement, ...]


def nest_parts(nest: LoopNest) -> tuple[LoopNest, ...]:
    """Return a nest of each outermost loop or statement that computes something, in order.

    Buffers are the whole's; those allocated inside loops of other parts lie outside of all loops. A
    part whose statements write constants alone is left out, for it has no leaf vector.
    """
    found, first = [], 0
    for node in nest.body:
        alone = LoopNest((), (node,), nest.gpu)
        count = len(alone.loops)
        if any(not leaf.statement.constant for leaf in alone.leaves):
            found.append(_part(nest, node, first, count))
        first += count
    return tuple(found)


def _part(nest: LoopNest, node: ForLoop | Statement, first: int, count: int) -> LoopNest:
    """The nest of one node, whose loops have the numbers ``first`` to ``first + count``."""
    own = range(first, first + count)
    buffers = tuple(
        replace(each, inside=each.inside - first if each.inside in own else OUTSIDE)
        for each in nest.buffers
    )
    return LoopNest(buffers, tuple(_renumbered((node,), first)), nest.gpu)


def _renumbered(body: Nodes, first: int) -> Iterator[ForLoop | Statement]:
    for node in body:
        if isinstance(node, ForLoop):
            yield replace(node, body=tuple(_renumbered(node.body, first)))
        else:
            reads = tuple(_access(each, first) for each in node.reads)
            yield replace(node, write=_access(node.write, first), reads=reads)


def _access(access: Access, first: int) -> Access:
    return replace(access, index=tuple(_index(each, first) for each in access.index))


def _index(index: Index, first: int) -> Index:
    if isinstance(index, LoopVariable):
        return LoopVariable(index.loop - first)
    if isinstance(index, IndexOperation):
        return IndexOperation(index.kind, _index(index.left, first), _index(index.right, first))
    return index
