"""Loop nests as JSON: compact lists, for tens of thousands of them are kept in one file.

A nest is ``{"version", "gpu", "buffers", "nodes"}``. A buffer is ``[name, shape, scope, inside]``.
Nodes are loops and statements in pre-order, each with its depth, the number of loops around it. A
loop is ``[depth, extent, annotation, auto_unroll]``, its annotation by number in `ANNOTATIONS`. A
statement is ``{"d": depth, "w": access, "r": accesses, "o": {kind: count}}``, with ``"c": 1`` where
it writes a constant; an access is ``[buffer, index, …]``
(`go_rl.costs.programs.nests.index.index_to_json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

from go_rl.core.files.strict_json import parse_json, shown
from go_rl.costs.programs.nests.check_nest import check_nest
from go_rl.costs.programs.nests.index import NestError, index_from_json, index_to_json
from go_rl.costs.programs.nests.nest import (
    ANNOTATIONS,
    FLOAT32,
    OPERATION_NAMES,
    PARALLEL,
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    Statement,
)

VERSION = 1
"""Version of the format."""
FIELDS = frozenset({"version", "gpu", "buffers", "nodes"})


def nest_to_json(nest: LoopNest) -> str:
    """Return a nest as one line of JSON."""
    document = {
        "version": VERSION,
        "gpu": nest.gpu,
        "buffers": [_buffer_to_json(buffer) for buffer in nest.buffers],
        "nodes": list(_nodes_to_json(nest.body, 0)),
    }
    return json.dumps(document, separators=(",", ":"))


def nest_from_json(text: str | bytes) -> LoopNest:
    """Read what `nest_to_json` wrote.

    Raises:
        NestError: it is not JSON, of another version, or the nest breaks a rule.
    """
    try:
        document = parse_json(text)
    except ValueError as error:
        raise NestError(f"a loop nest is not JSON: {error}") from error
    if not isinstance(document, dict) or set(document) != FIELDS:
        raise NestError(f"a loop nest is an object of {', '.join(sorted(FIELDS))}")
    if document["version"] != VERSION:
        raise NestError(
            f"a loop nest of version {shown(document['version'])}; this version of go_rl reads "
            f"{VERSION}"
        )
    if type(document["gpu"]) is not bool:
        raise NestError(f"field 'gpu' must be true or false, not {shown(document['gpu'])}")
    buffers = tuple(_buffer_from_json(each) for each in _list(document["buffers"], "buffers"))
    nodes = [_node_from_json(each) for each in _list(document["nodes"], "nodes")]
    return check_nest(LoopNest(buffers, _tree(nodes), document["gpu"]))


def parallel_launches(text: str) -> int:
    """Return how often a nest that `nest_to_json` wrote enters a parallel loop of several
    iterations. Only the loops are read: to make tens of thousands of nests takes a minute."""
    count, around = 0, [1]
    inside = inf
    for node in json.loads(text)["nodes"]:
        if not isinstance(node, list):
            continue
        depth, extent, annotation, _ = node
        del around[depth + 1 :]
        if depth <= inside:  # outside of all parallel loops so far
            inside = inf
            if ANNOTATIONS[annotation] == PARALLEL and extent > 1:
                count, inside = count + around[-1], depth
        around.append(around[-1] * extent)
    return count


def _buffer_to_json(buffer: NestBuffer) -> list[Any]:
    known: list[Any] = [buffer.name, list(buffer.shape), buffer.scope, buffer.inside]
    return known if buffer.dtype == FLOAT32 else [*known, buffer.dtype]


def _nodes_to_json(body: tuple[ForLoop | Statement, ...], depth: int) -> Iterator[Any]:
    for node in body:
        if isinstance(node, ForLoop):
            yield [depth, node.extent, ANNOTATIONS.index(node.annotation), node.auto_unroll]
            yield from _nodes_to_json(node.body, depth + 1)
            continue
        counts = zip(OPERATION_NAMES, node.operations, strict=True)
        statement: dict[str, Any] = {
            "d": depth,
            "w": _access_to_json(node.write),
            "r": [_access_to_json(read) for read in node.reads],
            "o": {name: count for name, count in counts if count},
        }
        yield statement | ({"c": 1} if node.constant else {})


def _access_to_json(access: Access) -> list[Any]:
    return [access.buffer, *(index_to_json(index) for index in access.index)]


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise NestError(f"{what} must be a list, not {shown(value)}")
    return value


def _whole(value: object, what: str) -> int:
    if type(value) is not int:
        raise NestError(f"{what} must be a whole number, not {shown(value)}")
    return value


def _buffer_from_json(value: object) -> NestBuffer:
    found = _list(value, "a buffer")
    if not 4 <= len(found) <= 5 or not isinstance(found[0], str) or not isinstance(found[2], str):
        raise NestError(f"a buffer is [name, shape, scope, inside], not {shown(value)}")
    shape = tuple(_whole(size, "a size") for size in _list(found[1], "a shape"))
    inside = _whole(found[3], "the loop around an allocation")
    return NestBuffer(found[0], shape, found[2], inside, *map(str, found[4:]))


def _tree(nodes: list[tuple[int, ForLoop | Statement]]) -> tuple[ForLoop | Statement, ...]:
    """Return the nodes outside of all loops, those inside in their place."""
    bodies: list[list[ForLoop | Statement]] = [[]]
    pending: list[ForLoop] = []

    def close(depth: int) -> None:
        while len(pending) > depth:
            body = tuple(bodies.pop())
            bodies[-1].append(replace(pending.pop(), body=body))

    for depth, node in nodes:
        if not 0 <= depth <= len(pending):
            raise NestError(f"a node of depth {depth} behind {len(pending)} open loops")
        close(depth)
        if isinstance(node, ForLoop):
            pending.append(node)
            bodies.append([])
        else:
            bodies[-1].append(node)
    close(0)
    return tuple(bodies[0])


def _node_from_json(value: object) -> tuple[int, ForLoop | Statement]:
    """Return a node and its depth; a loop without its body."""
    if isinstance(value, dict):
        return _whole(value.get("d"), "a statement's depth"), _statement_from_json(value)
    found = _list(value, "a loop or statement")
    if len(found) != 4:
        raise NestError(f"a loop is [depth, extent, annotation, auto_unroll], not {shown(value)}")
    depth, extent, number, auto_unroll = (_whole(each, "a loop's field") for each in found)
    if not 0 <= number < len(ANNOTATIONS):
        raise NestError(f"annotation {number}; there are {len(ANNOTATIONS)}")
    return depth, ForLoop(extent, ANNOTATIONS[number], (), auto_unroll)


def _statement_from_json(document: dict[str, Any]) -> Statement:
    if not {"d", "w", "r", "o"} <= set(document) <= {"d", "w", "r", "o", "c"}:
        raise NestError(f"a statement is an object of d, w, r, o and, may be, c: {shown(document)}")
    counts = document["o"]
    if not isinstance(counts, dict) or not set(counts) <= set(OPERATION_NAMES):
        raise NestError(f"operations have the names {', '.join(OPERATION_NAMES)}: {shown(counts)}")
    return Statement(
        _access_from_json(document["w"]),
        tuple(_access_from_json(each) for each in _list(document["r"], "reads")),
        tuple(_whole(counts.get(name, 0), f"{name} of a statement") for name in OPERATION_NAMES),
        "c" in document,
    )


def _access_from_json(value: object) -> Access:
    found = _list(value, "an access")
    if not found:
        raise NestError("an access is [buffer, index, ...], not []")
    return Access(_whole(found[0], "a buffer's number"), tuple(map(index_from_json, found[1:])))
