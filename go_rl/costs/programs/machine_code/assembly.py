"""`machine_functions`: assembly of x86-64, as LLVM prints it: blocks, jumps between them, loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

WRAPPERS = ("__", "_init", "_fini")
"""Beginnings of functions that TVM adds around what was asked for: checks of the arguments,
conversions of half precision."""
LABEL = re.compile(r"^([.\w$]+):$")
FUNCTION = re.compile(r"^\s*\.type\s+([.\w$]+),@function", re.MULTILINE)
COMMENT, DIRECTIVE = "#", "."
BLOCK, END = ".LBB", ".Lfunc_end"
JUMP, RETURN = "jmp", "ret"
OPERAND = re.compile(r"[^,(]*(?:\([^)]*\)[^,(]*)*")


@dataclass(frozen=True)
class MachineInstruction:
    """One line; the last operand is written."""

    name: str
    operands: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The last operand, by register; "" where there is none."""
        return register(self.operands[-1]) if self.operands else ""

    @property
    def jumps(self) -> bool:
        """Whether it may go elsewhere than to the next line."""
        return self.name.startswith("j")


@dataclass(frozen=True)
class MachineLoop:
    """A natural loop: control comes in by its header alone."""

    header: int
    blocks: frozenset[int]
    """Numbers of its blocks, the header's and those of loops inside among them."""


@dataclass(frozen=True, eq=False)
class MachineFunction:
    """One function."""

    name: str
    blocks: tuple[tuple[MachineInstruction, ...], ...]
    flow: nx.DiGraph
    """Which block may follow which."""

    @cached_property
    def dominators(self) -> dict[int, int]:
        """The block through which control must have come before each that is reached; of the first
        itself."""
        return {**nx.immediate_dominators(self.flow, 0), 0: 0}

    @cached_property
    def loops(self) -> tuple[MachineLoop, ...]:
        """All loops, those of one header joined."""
        found: dict[int, set[int]] = {}
        for latch, header in self.flow.edges:
            if latch in self.dominators and header in (latch, *self.before(latch)):
                found.setdefault(header, {header}).update(self._reaching(latch, header))
        return tuple(MachineLoop(header, frozenset(blocks)) for header, blocks in found.items())

    def before(self, block: int) -> Iterator[int]:
        """Yield the blocks that dominate a block, the nearest first, itself not among them."""
        while block != self.dominators[block]:
            block = self.dominators[block]
            yield block

    def within(self, loop: MachineLoop) -> Iterator[MachineInstruction]:
        """Yield the instructions of a loop."""
        for block in sorted(loop.blocks):
            yield from self.blocks[block]

    def _reaching(self, latch: int, header: int) -> set[int]:
        """Blocks from which the latch is reached without the header."""
        found, left = {header, latch}, [latch] if latch != header else []
        while left:
            new = set(self.flow.predecessors(left.pop())) & self.dominators.keys() - found
            found |= new
            left += new
        return found


def machine_functions(assembly: str) -> list[MachineFunction]:
    """Return the functions of an assembly in their order, without `WRAPPERS`."""
    names, found = set(FUNCTION.findall(assembly)), list[MachineFunction]()
    lines: list[str | MachineInstruction] | None = None
    name = ""
    for text in assembly.splitlines():
        line = text.partition(COMMENT)[0].strip()
        label = LABEL.match(line)
        if label is not None and label[1] in names:
            name, lines = label[1], []
        elif label is not None and label[1].startswith(END) and lines is not None:
            if not name.startswith(WRAPPERS):
                found.append(_function(name, lines))
            lines = None
        elif lines is not None and label is not None and label[1].startswith(BLOCK):
            lines.append(label[1])
        elif lines is not None and label is None and line and not line.startswith(DIRECTIVE):
            lines.append(_instruction(line))
    return found


def _instruction(line: str) -> MachineInstruction:
    name, _, rest = line.partition("\t" if "\t" in line else " ")
    operands = (part.strip() for part in OPERAND.findall(rest))
    return MachineInstruction(name, tuple(part for part in operands if part))


def _function(name: str, lines: Iterable[str | MachineInstruction]) -> MachineFunction:
    blocks: list[list[MachineInstruction]] = [[]]
    labels: dict[str, int] = {}
    for line in lines:
        ended = bool(blocks[-1]) and (isinstance(line, str) or _ends(blocks[-1][-1]))
        if ended:
            blocks.append([])
        if isinstance(line, str):
            labels[line] = len(blocks) - 1
        else:
            blocks[-1].append(line)
    flow = nx.DiGraph()
    flow.add_nodes_from(range(len(blocks)))
    for i, block in enumerate(blocks):
        last = block[-1] if block else MachineInstruction("")
        if last.jumps and last.operands and last.operands[0] in labels:
            flow.add_edge(i, labels[last.operands[0]])
        if i + 1 < len(blocks) and last.name != JUMP and not last.name.startswith(RETURN):
            flow.add_edge(i, i + 1)
    return MachineFunction(name, tuple(map(tuple, blocks)), flow)


def _ends(last: MachineInstruction) -> bool:
    return last.jumps or last.name.startswith(RETURN)


def _parts() -> Iterator[tuple[str, str]]:
    for letter in "abcd":
        yield from ((part, f"r{letter}x") for part in (f"e{letter}x", f"{letter}x", f"{letter}l"))
    for name in ("si", "di", "bp", "sp"):
        yield from ((part, f"r{name}") for part in (f"e{name}", name, f"{name}l"))
    for number in range(8, 16):
        yield from ((f"r{number}{part}", f"r{number}") for part in "dwb")


WHOLE = dict(_parts())
"""The whole register of each of its parts."""


def register(operand: str) -> str:
    """Return an operand with the whole register in place of a part, such as ``%rax`` for
    ``%eax``."""
    name = operand.removeprefix("%")
    return f"%{WHOLE.get(name, name)}" if operand.startswith("%") else operand
