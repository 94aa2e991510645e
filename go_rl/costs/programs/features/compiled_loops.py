"""Loops of a nest that become straight code, and those that become vector code, in a compiler for
processors.

TVM unrolls a serial loop whose statements, all iterations together, are no more than the nest asks
for (``auto_unroll``); LLVM one whose instructions are within a budget. Both go from the innermost
loop outwards, and stop at a loop that is not unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from go_rl.costs.programs.features.loop_roles import LeafLoops
from go_rl.costs.programs.nests import ForLoop, LoopNest, Statement
from go_rl.costs.programs.nests.nest import SERIAL, VECTORISED

UNROLL_BUDGET = 300
"""Instructions up to which LLVM unrolls a loop as a whole (its threshold at the highest level)."""
STATEMENT_COST = 2
"""Instructions of a statement, beside one for each access."""


def unrolled_loops(nest: LoopNest, lanes: int) -> frozenset[int]:
    """Return the numbers of the loops that become straight code.

    Args:
        nest: a nest.
        lanes: elements that a vector register holds.
    """
    found: set[int] = set()
    numbers = iter(range(len(nest.loops)))
    for node in nest.body:
        _straight(node, 0, lanes, numbers, found)
    return frozenset(found)


def _straight(
    node: ForLoop | Statement, told: int, lanes: int, numbers: Iterator[int], found: set[int]
) -> tuple[int, int] | None:
    """Statements and instructions of straight code; None: a loop is left."""
    if isinstance(node, Statement):
        return 1, STATEMENT_COST + len({node.write, *node.reads})
    number, told = next(numbers), node.auto_unroll or told
    parts = [_straight(each, told, lanes, numbers, found) for each in node.body]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    statements, cost = (sum(part[k] for part in known) for k in (0, 1))
    if node.annotation == VECTORISED:
        return statements, cost * -(-node.extent // lanes)
    statements, cost = statements * node.extent, cost * node.extent
    small = node.annotation == SERIAL and (statements <= told or cost <= UNROLL_BUDGET)
    if node.extent > 1 and not small:
        return None
    found.add(number)
    return statements, cost


def vectorised_by_compiler(
    nest: LoopNest, leaves: Sequence[LeafLoops], unrolled: frozenset[int]
) -> frozenset[int]:
    """Return the numbers of the loops that LLVM vectorises by itself: those around straight code
    each of whose statements writes neighbours, from elements that stand still or are neighbours.
    Arrays that are allocated inside of the loop are its own, and are not looked at.

    Args:
        nest: a nest.
        leaves: all of its statements.
        unrolled: of `unrolled_loops`.
    """
    fine: dict[int, bool] = {}
    for leaf in leaves:
        around = leaf.leaf.around
        hot = next((d for d in reversed(range(leaf.depth)) if around[d][0] not in unrolled), None)
        if hot is None:
            continue
        within = {number for number, _ in around[hot:]}
        write, *reads = (
            None if nest.buffers[buffer].inside in within else int(leaf.strides[a, hot])
            for a, buffer in enumerate(leaf.buffers)
        )
        good = not leaf.vectorised[hot] and write in (1, None)
        good = good and all(step in (0, 1, None) for step in reads)
        number = around[hot][0]
        fine[number] = fine.get(number, True) and good
    return frozenset(number for number, good in fine.items() if good)
