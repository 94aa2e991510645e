"""DOPPLER's text: graphs of einsums as its authors publish and simulate them.

Line 1 is the number of vertices, line 2 the numbers of those that are inputs, which have no line of
their own and no edge: the others are numbered anew from 0. Lines 3 and 4 are the senders and the
receivers of the edges. Each further line is one vertex: ``computation, communication[, type]``, two
counts and a word such as ``einsummable``. Numbers have commas between them, and may have one after.
Source: Yao et al., "DOPPLER: Dual-Policy Learning for Device Assignment in Asynchronous Dataflow
Graphs", ICLR 2026; ``_read_compute_graph`` and ``Simulator`` of its code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from go_rl.core import OpGraph, OpKind, ReadError
from go_rl.core.files.strict_json import shown
from go_rl.graphs.readers.file_errors import naming, read_text
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

FORMAT = "doppler"
COUNTS_A_SECOND = 1e10
"""Counts that the authors' simulator takes for one unit of time."""
ITEMSIZE = 4.0
_HEADER = ("the number of vertices", "the inputs", "the senders", "the receivers")
"""Content of the first lines."""
_COUNT = re.compile(r"[0-9]{1,18}")
_VERTEX = re.compile(r"([0-9]{1,18})\s*,\s*([0-9]{1,18})\s*(?:,\s*([A-Za-z_]+)?\s*)?")


@dataclass(frozen=True)
class _Lines:
    """Lines of the file, numbered from 1."""

    path: Path
    lines: list[str]

    def counts(self, number: int) -> list[int]:
        """Return the counts of a line of the header."""
        parts = [part.strip() for part in self.lines[number - 1].split(",")]
        if not parts[-1]:
            parts.pop()
        for part in parts:
            if not _COUNT.fullmatch(part):
                held = _HEADER[number - 1]
                raise self.error(number, f"{shown(part)} among {held}, which are whole numbers")
        return list(map(int, parts))

    def error(self, number: int, what: str) -> ReadError:
        """Return the error of a line."""
        return ReadError(f"{self.path}:{number}: {what}")


def read_doppler(path: str | Path) -> OpGraph:
    """Read a graph of DOPPLER.

    A vertex takes ``computation`` counts, its result ``communication`` counts from its device to
    another; both are counts, 10^10 a second as the authors simulate, and the second also the bytes
    of the result.

    Raises:
        ReadError: a line that is missing, too many or of another form, an edge that ends at no
            vertex, or a cycle; the message names the line.
    """
    path = Path(path)
    text = _Lines(path, read_text(path).rstrip().splitlines())
    if len(text.lines) <= len(_HEADER):
        raise ReadError(
            f"{path}: {len(text.lines)} lines; a graph of DOPPLER has {', '.join(_HEADER)}, then a "
            "line a vertex"
        )
    inputs = text.counts(2)
    vertices = [_vertex(text, number) for number in range(5, len(text.lines) + 1)]
    _check_number(text, inputs, len(vertices))
    edges = _edges(text, len(vertices))
    senders = {sender for sender, _ in edges}
    meta = {"format": FORMAT, "inputs": len(inputs), "notes": _notes(len(inputs))}
    builder = GraphBuilder(path.stem, meta)
    with naming(path):
        for i, (computation, communication, kind) in enumerate(vertices):
            builder.add_node(_node(i, computation, communication, kind, i in senders))
        for sender, receiver in edges:
            builder.add_edge(sender, receiver, float(vertices[sender][1]))
        return builder.build()


def _vertex(text: _Lines, number: int) -> tuple[int, int, str]:
    """Return computation, communication and type of the vertex on a line."""
    line = text.lines[number - 1].strip()
    found = _VERTEX.fullmatch(line)
    if found is None:
        form = "'computation, communication[, type]' with whole numbers"
        raise text.error(number, f"{shown(line)} is no vertex; it must be {form}")
    return int(found[1]), int(found[2]), found[3] or "operator"


def _check_number(text: _Lines, inputs: list[int], vertices: int) -> None:
    stated = text.counts(1)
    if len(stated) != 1:
        raise text.error(1, f"{len(stated)} numbers; it must be one, {_HEADER[0]}")
    if len(set(inputs)) < len(inputs):
        raise text.error(2, "an input is named twice")
    if any(number >= stated[0] for number in inputs):
        raise text.error(2, f"input {max(inputs)}, and there are {stated[0]} vertices")
    if stated[0] != len(inputs) + vertices:
        raise text.error(
            1,
            f"{stated[0]} vertices, but {len(inputs)} inputs on line 2 and {vertices} lines from "
            "line 5 on",
        )


def _edges(text: _Lines, vertices: int) -> list[tuple[int, int]]:
    ends = {number: text.counts(number) for number in (3, 4)}
    if len(ends[3]) != len(ends[4]):
        raise text.error(4, f"{len(ends[4])} receivers, and {len(ends[3])} senders on line 3")
    for number, found in ends.items():
        beyond = next((end for end in found if end >= vertices), None)
        if beyond is not None:
            last = vertices - 1
            raise text.error(number, f"vertex {beyond}; without inputs they are 0 to {last}")
    return list(zip(ends[3], ends[4], strict=True))


def _node(name: int, computation: int, communication: int, kind: str, is_read: bool) -> Node:
    return Node(
        name=name,
        op_type=kind,
        kind=OpKind.OTHER,
        output_bytes=float(communication),
        output_itemsize=ITEMSIZE,
        is_output=not is_read,
        source=f"line {5 + name}",
        seconds={"accelerator": computation / COUNTS_A_SECOND},
        transfer_seconds=communication / COUNTS_A_SECOND if is_read else 0.0,
    )


def _notes(inputs: int) -> list[str]:
    return [
        "seconds are counts, 10^10 a second as DOPPLER's authors simulate; none were measured",
        f"{inputs} inputs without costs are not in the graph",
    ]
