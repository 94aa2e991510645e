"""Order, liveness and name checks of one ONNX graph; all linear in its size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import onnx

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.graph_builder import cycle_text
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS, describe


def captured_names(node: onnx.NodeProto) -> set[str]:
    """Return the names that the subgraphs of ``node`` read from outside themselves."""
    stack = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    read: set[str] = set()
    defined: set[str] = set()
    while stack:
        graph = stack.pop()
        defined.update(v.name for v in graph.input)
        defined.update(t.name for t in graph.initializer)
        read.update(o.name for o in graph.output)
        for inner in graph.node:
            read.update(i for i in inner.input if i)
            defined.update(inner.output)
            stack.extend(a.g for a in inner.attribute if a.HasField("g"))
    return read - defined


def topological_nodes(
    graph: onnx.GraphProto, known: Collection[str], where: str
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of ``graph``, each after its producers, in file order where that is legal.

    Raises:
        ReadError: a result defined twice, a name that nothing defines, or a cycle.
    """
    nodes = list(graph.node)
    producer = _producers(graph, nodes, where)
    reads = [{i for i in n.input if i} | captured_names(n) for n in nodes]
    for node, names in zip(nodes, reads, strict=True):
        for name in names:
            if name not in producer and name not in known:
                raise ReadError(
                    f"{where}: {describe(node)} reads {name!r}, which nothing defines"
                    f"{nearest(name, [*producer, *known][:5000])}"
                )
    before = [{producer[n] for n in names if n in producer} for names in reads]
    order = _stable_order(before)
    if len(order) < len(nodes):
        done = set(order)

        def stuck_producer(i: int) -> int:
            return next(
                producer[n] for n in sorted(reads[i]) if n in producer and producer[n] not in done
            )

        start = next(i for i in range(len(nodes)) if i not in done)
        cycle = cycle_text(start, stuck_producer, lambda i: describe(nodes[i]))
        raise ReadError(f"{where} has a cycle: {cycle}")
    return iter([nodes[i] for i in order])


def drop_unread_results(graph: onnx.GraphProto, opsets: Mapping[str, int]) -> None:
    """Leave out, in place, every optional result after a node's first that nothing reads."""
    read = {o.name for o in graph.output}
    for node in graph.node:
        read.update(node.input)
        read |= captured_names(node)
    for node in graph.node:
        unread = [i for i, output in enumerate(node.output) if i and output not in read]
        required = _required_results(node, opsets) if unread else 1
        for i in unread:
            if i >= required:
                node.output[i] = ""


def _required_results(node: onnx.NodeProto, opsets: Mapping[str, int]) -> int:
    """Least number of a node's results; an operator without a schema, one."""
    domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return 1
    return schema.min_output


def live_nodes(graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return the nodes, in order, from which an output of ``graph`` can be reached."""
    wanted = {o.name for o in graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if wanted.isdisjoint(node.output):
            continue
        kept.append(node)
        wanted.update(i for i in node.input if i)
        wanted |= captured_names(node)
    return kept[::-1]


def _producers(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], where: str) -> dict[str, int]:
    producer: dict[str, int] = {}
    given = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    for i, node in enumerate(nodes):
        for output in node.output:
            if not output:
                continue
            if output in producer or output in given:
                other = "an input or initializer of the graph"
                if output in producer:
                    other = describe(nodes[producer[output]])
                raise ReadError(
                    f"{where}: {describe(node)} produces {output!r}, which {other} already defines"
                )
            producer[output] = i
    return producer


def _stable_order(before: list[set[int]]) -> list[int]:
    """Depth-first over the file: a node follows as soon as its last producer is placed.

    Args:
        before: numbers of the producers of each node.
    """
    waiting = [len(producers) for producers in before]
    readers: dict[int, list[int]] = {}
    for reader, producers in enumerate(before):
        for producer in producers:
            readers.setdefault(producer, []).append(reader)
    order: list[int] = []
    done = [False] * len(waiting)
    for start in range(len(waiting)):
        stack = [start] if waiting[start] == 0 and not done[start] else []
        while stack:
            i = stack.pop()
            done[i] = True
            order.append(i)
            for reader in readers.get(i, ()):
                waiting[reader] -= 1
                if waiting[reader] == 0 and reader < start:
                    stack.append(reader)
    return order
