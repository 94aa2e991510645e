"""HLO text, parsed into computations and instructions; no meaning attached yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from go_rl.core import ReadError
from go_rl.graphs.readers.hlo.shape import Shape, parse_shape
from go_rl.graphs.tables import names

# What is never closed reaches to the end: to look for its end at every start would take forever.
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|/\*.*?(?:\*/|\Z)', re.S)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\],]')
_HEADER = re.compile(r"^(ENTRY\s+)?%?([^\s(={]+)\s*(\(.*\)\s*->.*)?\{$")
_ASSIGNMENT = re.compile(r"^(ROOT\s+)?%?(\S+) = ")
_OPCODE = re.compile(r"\s*([a-z][\w-]*)\(")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_OPENING, _CLOSING = "({[", ")}]"

DONE = "async-done"
_NOT_ASYNCHRONOUS = names("send-done recv-done")
"""Ends of ``send`` and ``recv``, which are instructions of their own."""
_RESULT = {"copy": 0}
"""Place of the result in what a start yields; 1 for the others, after the operands."""


def synchronous(
    opcode: str, shape: Shape, attributes: dict[str, str]
) -> tuple[str, Shape, dict[str, str]]:
    """Return opcode, shape and attributes of an instruction without its being asynchronous."""
    name, _, end = opcode.rpartition("-")
    if not name or opcode in _NOT_ASYNCHRONOUS or end not in ("start", "update", "done"):
        return opcode, shape, attributes
    if end != "start":
        return DONE, shape, _without_calls(attributes)
    # An all-reduce-start yields its result alone, of whatever shape.
    result = shape if name == "all-reduce" else _awaited(opcode, shape, _RESULT.get(name, 1))
    if name == "async":
        return "call", result, {**attributes, "to_apply": attributes.get("calls", "")}
    return name, result, attributes


def _awaited(opcode: str, shape: Shape, place: int) -> Shape:
    if not shape.is_tuple or len(shape.parts) <= place:
        raise ReadError(f"a {opcode} yields a tuple of its operands, its result and counters")
    return shape.parts[place]


def _without_calls(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in attributes.items() if key not in ("calls", "to_apply")}


@dataclass(frozen=True)
class Instruction:
    """One HLO instruction."""

    name: str
    shape: Shape
    opcode: str
    operands: tuple[str, ...]
    """Names of the operands; for a parameter its number, for a constant its literal."""
    attributes: Mapping[str, str]
    """Attribute texts as written, such as ``{1}`` or ``LT``."""
    is_root: bool
    source: str
    """The instruction's name with the place in the user's program from its metadata."""

    def numbers(self, attribute: str) -> tuple[int, ...]:
        """The integers of an attribute such as ``dimensions={0,1}``; empty when absent."""
        return tuple(int(n) for n in re.findall(r"-?\d+", self.attributes.get(attribute, "")))

    def callees(self, *attributes: str) -> tuple[str, ...]:
        """Names of the computations that the attributes call."""
        texts = (self.attributes.get(a, "") for a in attributes)
        return tuple(n for text in texts for n in re.findall(r"%?([^\s,{}%]+)", text))


@dataclass(frozen=True)
class Computation:
    """A named list of instructions in printed order."""

    name: str
    instructions: tuple[Instruction, ...]

    @cached_property
    def root(self) -> Instruction:
        return next((i for i in self.instructions if i.is_root), self.instructions[-1])

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        return {i.name: i for i in self.instructions}


@dataclass(frozen=True)
class Module:
    """A parsed ``HloModule``."""

    name: str
    computations: Mapping[str, Computation]
    entry: str
    header: str = ""
    """The first line: ``HloModule name, is_scheduled=true, …``."""

    @property
    def instructions(self) -> Iterator[Instruction]:
        """Instructions of all computations."""
        return (each for inner in self.computations.values() for each in inner.instructions)

    def number(self, attribute: str) -> int:
        """Return a number of the header, such as ``num_partitions=4``; 1 where it is absent."""
        found = re.search(rf"\b{attribute}=(\d{{1,9}})\b", self.header)
        return int(found[1]) if found else 1


@dataclass
class _Sources:
    """The tables of file names and stack frames that newer XLA prints above the computations."""

    rows: dict[str, dict[str, str]] = field(default_factory=lambda: {t: {} for t in _TABLES})

    def add(self, table: str, line: str) -> None:
        number, _, content = line.partition(" ")
        self.rows[table][number] = content.strip()

    def place(self, metadata: str) -> str:
        """``file.py:12`` from an instruction's metadata, or an empty string."""
        fields = dict(re.findall(r'\b(\w+)=("(?:[^"\\]|\\.)*"|[^\s}]+)', metadata))
        file, line = fields.get("source_file", ""), fields.get("source_line", "")
        if not file and "stack_frame_id" in fields:
            frame = self._row("StackFrames", fields["stack_frame_id"])
            location = self._row("FileLocations", frame.get("file_location_id", ""))
            file = self.rows["FileNames"].get(location.get("file_name_id", ""), "")
            line = location.get("line", "")
        base = re.split(r"[/\\]", file.strip('"'))[-1]
        return f"{base}:{line}" if base and line else base

    def _row(self, table: str, number: str) -> dict[str, str]:
        return dict(re.findall(r"\b(\w+)=(\d+)", self.rows[table].get(number, "")))


def parse_hlo(text: str) -> Module:
    """Parse a printed module.

    Raises:
        ReadError: the text is cut short or not HLO; the message quotes the line.
    """
    text = _COMMENT_OR_STRING.sub(_kept, text)
    lines = _whole_statements(text)
    header_line = next(lines, "")
    title = re.match(r"HloModule\s+([^\s,]+)", header_line)
    if title is None:
        raise ReadError("HLO text begins with 'HloModule name'")
    sources, computations = _Sources(), {}
    entry, table, header = "", "", None
    body: list[Instruction] = []
    for line in lines:
        if header is None and line in _TABLES:
            table = line
        elif header is None and table and line[:1].isdigit():
            sources.add(table, line)
        elif header is None:
            header = _HEADER.match(line) if line.endswith("{") else None
            if header is None:
                raise ReadError(f"expected a computation 'name {{' and found {line[:60]!r}")
            body = []
        elif line.startswith("}"):
            _close(header[2], body, computations)
            entry = header[2] if header[1] else entry
            header = None
        else:
            body.append(_instruction(line, sources))
    if header is not None:
        raise ReadError(f"the text ends inside computation {header[2]!r}; it is cut short")
    if not entry:
        raise ReadError("the module has no ENTRY computation; the text is cut short or not HLO")
    return Module(title[1], computations, entry, header_line)


def _kept(match: re.Match[str]) -> str:
    """A string as it is, and nothing of a comment."""
    text = match[0]
    if text.startswith("/*"):
        return ""
    if _STRING.fullmatch(text) is None or "\n" in text:
        raise ReadError(f"a quote is never closed: {text[:60]!r}")
    return text


def _close(name: str, body: list[Instruction], computations: dict[str, Computation]) -> None:
    if not body:
        raise ReadError(f"computation {name!r} has no instructions")
    if len({i.name for i in body}) < len(body):
        raise ReadError(f"computation {name!r} names two instructions alike")
    if name in computations:
        raise ReadError(f"computation {name!r} is defined twice")
    computations[name] = Computation(name, tuple(body))


def _whole_statements(text: str) -> Iterator[str]:
    """Yield stripped lines; an instruction that spans several lines is joined."""
    pending: list[str] = []
    depth = 0
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            continue
        if not pending and not _ASSIGNMENT.match(line):
            yield line
            continue
        bare = _STRING.sub("", line)
        depth += sum(map(bare.count, _OPENING)) - sum(map(bare.count, _CLOSING))
        pending.append(line)
        if depth <= 0:
            yield " ".join(pending)
            pending, depth = [], 0
    if pending:
        yield " ".join(pending)


def _instruction(line: str, sources: _Sources) -> Instruction:
    head = _ASSIGNMENT.match(line)
    if head is None:
        raise ReadError(f"expected an HLO instruction and found {line[:60]!r}")
    shape, place = parse_shape(line, head.end())
    opcode = _OPCODE.match(line, place)
    if opcode is None:
        raise ReadError(f"instruction {head[2]!r} has no opcode: {line[:80]!r}")
    operands, place = _pieces(line, opcode.end())
    attributes = {}
    for piece in _pieces(line, place)[0]:
        key, _, value = piece.partition("=")
        attributes[key.strip()] = value.strip()
    metadata = attributes.get("metadata", "")
    keep = opcode[1] in ("constant", "parameter")
    kind, shape, attributes = synchronous(opcode[1], shape, attributes)
    return Instruction(
        name=head[2],
        shape=shape,
        opcode=kind,
        operands=tuple(operands) if keep else tuple(o.split()[-1].lstrip("%") for o in operands),
        attributes=attributes,
        is_root=head[1] is not None,
        source=_source(head[2], metadata, sources),
    )


def _source(name: str, metadata: str, sources: _Sources) -> str:
    if not metadata:
        return name
    op = re.search(r'op_name="((?:[^"\\]|\\.)*)"', metadata)
    facts = [f for f in (op[1] if op else "", sources.place(metadata)) if f]
    return f"{name} ({', '.join(facts)})" if facts else name


def _pieces(line: str, start: int) -> tuple[list[str], int]:
    """Split at top-level commas from ``start`` to the bracket that closes, or the line's end."""
    pieces, depth, begin = [], 0, start
    for match in _STRUCTURE.finditer(line, start):
        token = match[0]
        if token in _OPENING:
            depth += 1
        elif token in _CLOSING:
            depth -= 1
            if depth < 0:
                return _with(pieces, line[begin : match.start()]), match.end()
        elif token == "," and depth == 0:
            pieces = _with(pieces, line[begin : match.start()])
            begin = match.end()
    if depth > 0:
        raise ReadError(f"a bracket is never closed in {line[:80]!r}; the text is cut short")
    return _with(pieces, line[begin:]), len(line)


def _with(pieces: list[str], piece: str) -> list[str]:
    if piece.strip():
        pieces.append(piece.strip())
    return pieces
