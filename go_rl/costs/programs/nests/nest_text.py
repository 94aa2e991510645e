"""`nest_text`: a loop nest to be read by people."""

from __future__ import annotations

from collections.abc import Iterator

from go_rl.costs.programs.nests.index import index_text
from go_rl.costs.programs.nests.nest import (
    OPERATION_NAMES,
    OUTSIDE,
    SERIAL,
    Access,
    ForLoop,
    LoopNest,
    Statement,
)

INDENT = "  "


def nest_text(nest: LoopNest) -> str:
    """Return one line for each buffer, loop and statement.

    Loops are numbered as in index expressions. A statement is ``buffer[index] = f(reads)`` and the
    operations of one execution; ``= constant`` where nothing is computed.
    """
    lines = [_buffer_line(nest, number) for number in range(len(nest.buffers))]
    numbers = iter(range(len(nest.loops)))
    for node in nest.body:
        lines.extend(_lines(nest, node, numbers, 0))
    return "\n".join(lines)


def _buffer_line(nest: LoopNest, number: int) -> str:
    buffer = nest.buffers[number]
    where = "" if buffer.inside == OUTSIDE else f" in i{buffer.inside}"
    return f"{buffer.name}: {buffer.dtype}{list(buffer.shape)} {buffer.scope}{where}"


def _lines(
    nest: LoopNest, node: ForLoop | Statement, numbers: Iterator[int], depth: int
) -> Iterator[str]:
    if isinstance(node, Statement):
        yield INDENT * depth + _statement_line(nest, node)
        return
    kind = "" if node.annotation == SERIAL else f" {node.annotation}"
    unroll = f" auto-unroll {node.auto_unroll}" if node.auto_unroll else ""
    yield f"{INDENT * depth}for i{next(numbers)} in {node.extent}:{kind}{unroll}"
    for inner in node.body:
        yield from _lines(nest, inner, numbers, depth + 1)


def _statement_line(nest: LoopNest, statement: Statement) -> str:
    if statement.constant:
        return f"{_access(nest, statement.write)} = constant"
    reads = ", ".join(_access(nest, read) for read in statement.reads)
    counts = zip(OPERATION_NAMES, statement.operations, strict=True)
    spent = ", ".join(f"{count} {name}" for name, count in counts if count)
    return f"{_access(nest, statement.write)} = f({reads})" + (f"  # {spent}" if spent else "")


def _access(nest: LoopNest, access: Access) -> str:
    index = ", ".join(index_text(each) for each in access.index)
    return f"{nest.buffers[access.buffer].name}[{index}]"
