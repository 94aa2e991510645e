"""HLO text, as XLA prints it (``lowered.as_text("hlo")``, ``compiled.as_text()``), as a graph."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import prod
from pathlib import Path

from go_rl.core import GoRLError, OpGraph, ReadError, UnknownOperatorError
from go_rl.graphs.readers.file_errors import naming, read_text
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.hlo.cost import Costs
from go_rl.graphs.readers.hlo.custom_calls import target_of
from go_rl.graphs.readers.hlo.graph import HloWalk
from go_rl.graphs.readers.hlo.text import Module, parse_hlo
from go_rl.graphs.readers.model_options import with_trips

FORMAT = "hlo"


def read_hlo(
    path: str | Path,
    unknown: str = "error",
    weights: Collection[int] = (),
    trip_count: int | None = None,
) -> OpGraph:
    """Read an HLO text file.

    FLOP and bytes are those of XLA's cost analysis, loops times their trip count; a fusion costs
    its body's FLOP and its own operands' and result's bytes.

    Args:
        path: the file.
        unknown: ``"error"`` refuses unknown opcodes, custom calls and loops of unknown length;
            ``"bytes"`` counts their bytes (of a loop, one pass).
        weights: numbers of the entry parameters that stay on the device between steps; all others
            are inputs. Constant arrays are always weights of the nodes that read them.
        trip_count: trips of every loop whose count does not follow from the text.

    Raises:
        ReadError: the text is not HLO, is cut short, or contradicts itself.
        UnknownOperatorError: see ``unknown``.
    """
    path = Path(path)
    return graph_of_hlo(read_text(path), path, FORMAT, (unknown, trip_count), weights)


def graph_of_hlo(
    text: str,
    path: str | Path,
    form: str,
    allowed: tuple[str, int | None] = ("error", None),
    weights: Collection[int] = (),
    dims: Mapping[str, int] | None = None,
    partitions: int = 1,
) -> OpGraph:
    """Return the graph of an HLO module; ``path``, ``form`` and ``dims`` go into messages and
    `meta`.

    ``allowed`` are ``unknown`` and ``trip_count`` of `read_hlo`, ``partitions`` those that the text
    which the module was made of names.
    """
    unknown, trip_count = allowed
    dims = with_trips(dims or {}, trip_count)
    try:
        module = parse_hlo(text)
        notes: list[str] = []
        builder = GraphBuilder(module.name, {"format": form, "dims": dims, "notes": notes})
        HloWalk(Costs.of(module, unknown, trip_count), builder, weights).run()
        flops = float(sum(node.flops for node in builder.nodes))
        notes += module_notes(module, flops, partitions)
    except UnknownOperatorError as error:
        raise UnknownOperatorError(f"{path}: {error}") from error
    except (ArithmeticError, GoRLError, LookupError, TypeError, ValueError) as error:
        raise ReadError(f"{path}: malformed HLO: {error}") from error
    _check_weights(module, weights, path)
    with naming(path):
        return builder.build()


def _check_weights(module: Module, weights: Collection[int], path: str | Path) -> None:
    entry = module.computations[module.entry].instructions
    count = sum(each.opcode == "parameter" for each in entry)
    if beyond := [number for number in weights if number >= count]:
        raise ReadError(
            f"{path}: weights names parameter {beyond[0]}, and the module has {count}, from 0"
        )


_MANUAL = ("xla.sdy.GlobalToLocalShape", "SPMDFullToShardShape")
"""Custom calls after which a module that is not partitioned computes what one device does."""


def module_notes(module: Module, flops: float, partitions: int = 1) -> list[str]:
    """Return the notes; none for a module of one device.

    Args:
        module: the parsed module.
        flops: of its graph.
        partitions: their number where the text it was made of gives it (StableHLO).
    """
    replicas = module.number("replica_count")
    partitions = max(partitions, module.number("num_partitions"), _annotated(module))
    notes = []
    if partitions > 1 and _is_partitioned(module):
        notes.append(
            f"the module is one partition of {partitions}: the graph, its FLOP and bytes are what "
            f"one device runs, {flops:.3g} FLOP, and all together run {partitions * flops:.3g}; "
            "the module before partitioning (lowered.as_text()) is the whole model"
        )
    elif partitions > 1 and _has_manual_part(module):
        notes.append(
            f"what is inside of a shard_map is what one device of {partitions} runs, for the "
            f"module is not partitioned yet: all together run {partitions} times its FLOP; trace "
            "the model without shard_map to have the whole"
        )
    elif partitions > 1:
        notes.append(
            f"the module is annotated for {partitions} partitions and not partitioned yet: the "
            "graph is the whole model, and the annotations are left out"
        )
    if replicas > 1:
        notes.append(
            f"the module is one replica of {replicas}: the graph is what one device runs on its "
            "share of the batch"
        )
    return notes


def _is_partitioned(module: Module) -> bool:
    """XLA's partitioner renames the entry; what is scheduled was partitioned before."""
    return "is_scheduled=true" in module.header or module.entry.endswith("_spmd")


def _annotated(module: Module) -> int:
    """Devices of the largest sharding annotation; 1 where there is none that splits."""
    texts = [each.attributes.get("sharding", "") for each in module.instructions]
    tiles = [m for text in texts for m in re.findall(r"devices=\[[\d,]+\]<=\[([\d,]+)\]", text)]
    listed = [m for text in texts for m in re.findall(r"devices=\[([\d,]+)\]\d", text)]
    meshes = re.findall(r"#sdy\.mesh<\[([^\]]*)\]", module.header)
    axes = [",".join(re.findall(r"=(\d+)", mesh)) for mesh in meshes]
    sizes = (map(int, filter(None, text.split(","))) for text in (*tiles, *listed, *axes))
    return max(map(prod, sizes), default=1)


def _has_manual_part(module: Module) -> bool:
    return not {target_of(each) for each in module.instructions}.isdisjoint(_MANUAL)
