"""`unrolled_loops`: the loops that become straight code, by TVM's rule and by LLVM's.

TVM unrolls a serial loop whose statements, all iterations together, are no more than the nest asks
for (``auto_unroll``); LLVM one whose instructions are within a budget. Both go from the innermost
loop outwards, and stop at a loop that is not unrolled.
"""

from __future__ import annotations

from go_rl.programs.nests import ForLoop, LoopNest, Statement
from go_rl.programs.nests.nest import SERIAL, VECTORISED

UNROLL_BUDGET = 600
"""Instructions up to which a loop is unrolled as a whole."""
STATEMENT_COST = 2
"""Instructions of a statement, beside one for each access."""


def unrolled_loops(nest: LoopNest, lanes: int, budget: int = UNROLL_BUDGET) -> frozenset[int]:
    """Return the numbers of the loops that are unrolled.

    Args:
        nest: a nest.
        lanes: elements that a vector holds.
        budget: instructions.
    """
    found: set[int] = set()
    number = 0

    def walk(node: ForLoop | Statement, told: int) -> tuple[int, int] | None:
        """Statements and instructions of straight code; None: a loop is left."""
        nonlocal number
        if isinstance(node, Statement):
            return 1, STATEMENT_COST + len({node.write, *node.reads})
        mine, told = number, node.auto_unroll or told
        number += 1
        parts = [walk(each, told) for each in node.body]
        if any(part is None for part in parts):
            return None
        statements = sum(part[0] for part in parts if part)
        cost = sum(part[1] for part in parts if part)
        if node.annotation == VECTORISED:
            return statements, cost * -(-node.extent // lanes)
        statements, cost = statements * node.extent, cost * node.extent
        serial = node.annotation == SERIAL
        if node.extent == 1 or (serial and (statements <= told or cost <= budget)):
            found.add(mine)
            return statements, cost
        return None

    for each in nest.body:
        walk(each, 0)
    return frozenset(found)
