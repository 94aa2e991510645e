"""`iterations`: how often a loop of machine code runs, from its counter.

LLVM leaves loops of constant length in few forms: a register, or a place on the stack, gets a
constant before the loop, moves by constants inside of it, and is compared with a constant where the
loop may end. A bit that is tested stands for two iterations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import floor

from go_rl.costs.programs.machine_code.assembly import (
    JUMP,
    MachineFunction,
    MachineInstruction,
    MachineLoop,
    register,
)

MOVED = re.compile(r"^(-?\d+)\((%\w+)\)$")
"""Address that is one register and a constant: what ``lea`` adds."""
BETWEEN = ("mov", "lea", "vmov", "vbroadcast", "vxor", "set")
"""Instructions that may stand between the comparison and the jump, for they leave flags alone."""
MOST = 1e8
TWICE = 2
"""Iterations of a loop that ends when a bit is no longer set."""


def iterations(function: MachineFunction, loop: MachineLoop) -> int | None:
    """Return the iterations of a loop each time it is entered; None: they do not follow from its
    counter."""
    found: int | None = None
    for block in sorted(loop.blocks):
        after = set(function.flow.successors(block))
        if after <= loop.blocks:
            continue
        told = _told(function, loop, block)
        if told is not None and (found is None or loop.header in after):
            found = told
    return found


def _told(function: MachineFunction, loop: MachineLoop, block: int) -> int | None:
    """Iterations by the comparison at the end of a block that may leave the loop."""
    *lines, last = function.blocks[block]
    if not last.jumps or last.name == JUMP:
        return None
    compared = next((line for line in reversed(lines) if not line.name.startswith(BETWEEN)), None)
    if compared is None or not compared.operands:
        return None
    first = compared.operands[0]
    if compared.name.startswith("test"):
        bit = first == "$1" or (compared.name.endswith("b") and register(first) == compared.target)
        return TWICE if bit else None
    if compared.name.startswith("cmp") and first.startswith("$"):
        whole = floor if last.name in ("jbe", "jle") else round
        count = _count(function, loop, compared.target, int(first[1:], 0))
        return None if count is None else _sure(whole(count) + (whole is floor))
    if compared.name.startswith(("add", "sub", "inc", "dec")):
        count = _count(function, loop, compared.target, 0)
        return None if count is None else _sure(round(count))
    return None


def _sure(count: int) -> int | None:
    return count if 0 < count < MOST else None


def _count(function: MachineFunction, loop: MachineLoop, counter: str, end: int) -> float | None:
    """Steps that a counter takes to its end."""
    names = _names(function, loop, counter)
    step = next((move for name in names if (move := _step(function, loop, name))), None)
    step = step or next((by for by in names.values() if by), None)
    if not step:
        return None
    starts = (_start(function, loop, name) for name in names)
    start = next((value for value in starts if value is not None), 0 if step > 0 else None)
    return None if start is None else (end - start) / step


def _names(function: MachineFunction, loop: MachineLoop, counter: str) -> dict[str, int]:
    """Places that hold the counter in the loop, and by how much they differ: registers and places
    on the stack from or to which it is moved."""
    found = {counter: 0}
    moves = [line for line in function.within(loop) if _carries(line)]
    while True:
        before = len(found)
        for line in moves:
            source, target = register(line.operands[0]), line.target
            if line.name.startswith("lea"):
                moved = MOVED.match(line.operands[0])
                if moved is not None and target in found:
                    found.setdefault(register(moved[2]), int(moved[1]))
            elif target in found:
                found.setdefault(source, 0)
            elif source in found:
                found.setdefault(target, 0)
        if len(found) == before:
            return found


def _carries(line: MachineInstruction) -> bool:
    """Whether an instruction moves a whole number between registers and the stack."""
    if len(line.operands) != 2 or line.operands[0].startswith("$"):
        return False
    plain = all("(" not in each or each.endswith("(%rsp)") for each in line.operands)
    return line.name.startswith("lea") or (line.name.startswith("mov") and plain)


def _step(function: MachineFunction, loop: MachineLoop, name: str) -> int:
    """Constant that the loop adds to a register or place; 0: there is none."""
    return sum(_moved(line) for line in function.within(loop) if line.target == name)


def _moved(line: MachineInstruction) -> int:
    first = line.operands[0]
    if line.name.startswith(("inc", "dec")):
        return 1 if line.name.startswith("inc") else -1
    if line.name.startswith(("add", "sub")) and first.startswith("$"):
        return int(first[1:], 0) * (1 if line.name.startswith("add") else -1)
    moved = MOVED.match(first) if line.name.startswith("lea") else None
    return int(moved[1]) if moved is not None and register(moved[2]) == line.target else 0


def _start(function: MachineFunction, loop: MachineLoop, name: str) -> int | None:
    """The constant that a register or place has before the loop; None: there is none."""
    for line in _earlier(function, loop):
        if line.target != name or line.name.startswith(("cmp", "test")):
            continue
        first = line.operands[0]
        if line.name.startswith("xor") and register(first) == name:
            return 0
        if not line.name.startswith("mov"):
            return None
        if first.startswith("$"):
            return int(first[1:], 0) if first[1:].lstrip("-").isdigit() else None
        name = register(first)
    return None


def _earlier(function: MachineFunction, loop: MachineLoop) -> Iterator[MachineInstruction]:
    """Instructions that have run before the loop, the latest first."""
    for block in function.before(loop.header):
        yield from reversed(function.blocks[block])
