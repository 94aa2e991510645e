"""`scope_tree`: the operators of a graph in blocks and modules, by the scopes in their names.

``N`` operators, ``K`` blocks; an *item* is an operator, 0 to N - 1, or a block, N + its index.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from jaxtyping import Int64

from go_rl.core import OpGraph, OpKind

MOST_CHILDREN = 40
"""Children of a block beyond which they are gathered in further blocks."""
USUAL_CHILDREN = 24
"""Children of a block that is cut out of a long row of operators."""
BACKWARD = "backward"
"""Block of the backward pass, whose operators have the scopes of the forward one."""
LARGE = 0.1
"""Share of the operators from which a block stands alone."""
NAMED_TYPES = 2
"""Types of operators in the name of such a block."""
ROOT = 0
"""Index of the block that holds everything."""
NO_BLOCK = -1
"""Parent of the root."""
_FAMILY = re.compile(r"^(.+?)[._]")
"""First word of a name such as ``conv2_block3_1_bn``."""


@dataclass(frozen=True, eq=False)
class ScopeTree:
    """Blocks, one inside the other; a block comes after the one that holds it."""

    names: tuple[str, ...]
    """[K] name of each block inside the one that holds it."""
    parent: Int64[np.ndarray, "I"]
    """[N + K] block that holds each item; `NO_BLOCK` for the root."""
    children: tuple[tuple[int, ...], ...]
    """[K] items in each block, those that run first at the front."""
    num_nodes: int
    """Number of nodes N."""

    def path(self, item: int) -> str:
        """Names of the blocks around an item, from the outside in, with ``/`` between."""
        found: list[str] = []
        block = int(self.parent[item])
        while block > ROOT:
            found.append(self.names[block])
            block = int(self.parent[self.num_nodes + block])
        return "/".join(reversed(found))


@dataclass(eq=False)
class _Block:
    """A block while the tree is made: its name, blocks by name, and its own operators."""

    name: str
    blocks: list[_Block] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)


def scope_tree(graph: OpGraph) -> ScopeTree:
    """Return the blocks of a graph.

    Scopes are the parts of a name before the last ``/``, or before the last dot where no name has
    a ``/``; the backward pass is a block of its own. Where a block has too many children they are
    gathered by the first word of their names, and else in rows of neighbours along the graph.
    """
    level = _levels(graph)
    root = _by_scope(graph)
    _gather(root, graph, level)
    return _flat(root, graph.num_nodes, level)


def _levels(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """[N] longest path from the inputs to each node; constants, and what is made of them alone,
    come just before their first reader, not at the beginning."""
    level, follows = [0] * graph.num_nodes, (graph.kind == OpKind.INPUT).tolist()
    edges = sorted(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    for sender, receiver in edges:
        if follows[sender]:
            follows[receiver] = True
            level[receiver] = max(level[receiver], level[sender] + 1)
    last = max(level, default=0)
    level = [place if told else last for place, told in zip(level, follows, strict=True)]
    for sender, receiver in reversed(edges):
        if not follows[sender]:
            level[sender] = min(level[sender], level[receiver] - 1)
    return np.array(level, np.int64)


def _by_scope(graph: OpGraph) -> _Block:
    names = [str(name).strip("/") for name in graph.names]
    mark = "/" if any("/" in name for name in names) else "."
    root = _Block(graph.name)
    known: dict[tuple[str, ...], _Block] = {(): root}
    for node, name in enumerate(names):
        path = tuple(part for part in name.split(mark)[:-1] if part)
        if graph.is_backward[node]:
            path = (BACKWARD, *path)
        for end in range(1, len(path) + 1):
            if path[:end] not in known:
                known[path[:end]] = _Block(path[end - 1])
                known[path[: end - 1]].blocks.append(known[path[:end]])
        known[path].nodes.append(node)
    return root


def _gather(block: _Block, graph: OpGraph, level: Int64[np.ndarray, "N"]) -> None:
    """Join blocks with a single child, and split those with too many, from the top down."""
    while len(block.blocks) == 1 and not block.nodes:
        inner = block.blocks[0]
        block.name = f"{block.name}/{inner.name}"
        block.blocks, block.nodes = inner.blocks, inner.nodes
    if len(block.blocks) + len(block.nodes) > MOST_CHILDREN:
        _gather_families(block, level)
    if len(block.blocks) + len(block.nodes) > MOST_CHILDREN:
        _cut_rows(block, graph, level)
    for inner in block.blocks:
        _gather(inner, graph, level)


def _gather_families(block: _Block, level: Int64[np.ndarray, "N"]) -> None:
    """Gather inner blocks whose names begin with one word, if that leaves half as many and they are
    neighbours along the graph: all of ``conv2_``, not all of ``add_``."""
    families: dict[str, list[_Block]] = defaultdict(list)
    for inner in block.blocks:
        families[_family(inner)].append(inner)
    in_order = sorted(block.blocks, key=lambda inner: _place(inner, level))
    changes = sum(_family(a) != _family(b) for a, b in pairwise(in_order))
    if not changes < 2 * len(families) <= len(block.blocks) or len(families) == 1:
        return
    gathered = []
    for name, members in families.items():
        if len(members) == 1:
            gathered.append(members[0])
            continue
        for member in members:
            member.name = member.name.removeprefix(name).lstrip("._") or member.name
        gathered.append(_Block(name, members))
    block.blocks = gathered


def _family(block: _Block) -> str:
    found = _FAMILY.match(block.name)
    return found[1] if found else block.name


def _cut_rows(block: _Block, graph: OpGraph, level: Int64[np.ndarray, "N"]) -> None:
    """Cut the children, in the order in which they run, into rows of about equal length; blocks
    that hold much of the whole stay as they are."""
    total = len(_nodes(block))
    large = [inner for inner in block.blocks if len(_nodes(inner)) > LARGE * total]
    small = [inner for inner in block.blocks if inner not in large]
    children = sorted([*small, *block.nodes], key=lambda child: _place(child, level))
    rows = min(MOST_CHILDREN, -(-len(children) // USUAL_CHILDREN))
    ends = np.linspace(0, len(children), rows + 1).round().astype(int).tolist()
    cut = [children[start:end] for start, end in pairwise(ends)]
    block.nodes = []
    block.blocks = large + [
        _Block(_row_name(i, row, graph),
               [child for child in row if isinstance(child, _Block)],
               [child for child in row if not isinstance(child, _Block)])
        for i, row in enumerate(cut)
    ]  # fmt: skip


def _row_name(i: int, row: Sequence[_Block | int], graph: OpGraph) -> str:
    kinds = Counter(graph.op_type[node] for child in row for node in _nodes(child))
    common = ", ".join(name for name, _ in kinds.most_common(NAMED_TYPES))
    return f"part {i + 1}: {common}"


def _nodes(child: _Block | int) -> list[int]:
    if not isinstance(child, _Block):
        return [child]
    return [*child.nodes, *(node for inner in child.blocks for node in _nodes(inner))]


def _place(child: _Block | int, level: Int64[np.ndarray, "N"]) -> tuple[float, int]:
    """Mean depth, then the first operator."""
    nodes = _nodes(child)
    return float(np.mean(level[nodes])), min(nodes)


def _flat(root: _Block, count: int, level: Int64[np.ndarray, "N"]) -> ScopeTree:
    order, owner = [root], [NO_BLOCK]
    for i, block in enumerate(order):  # which grows as it is read
        order += block.blocks
        owner += [i] * len(block.blocks)
    number = {id(block): count + i for i, block in enumerate(order)}
    parent = np.zeros(count + len(order), np.int64)
    parent[count:] = owner
    children = []
    for i, block in enumerate(order):
        parent[block.nodes] = i
        held: list[_Block | int] = sorted(
            [*block.blocks, *block.nodes], key=lambda child: _place(child, level)
        )
        children.append(tuple(number[id(c)] if isinstance(c, _Block) else c for c in held))
    return ScopeTree(tuple(block.name for block in order), parent, tuple(children), count)
