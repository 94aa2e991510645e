"""Notes on whose work a sharded module describes: one device's, or the whole model's."""

from __future__ import annotations

import re

from go_rl.graphs.readers.hlo.text import Module

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
    texts = [
        i.attributes.get("sharding", "")
        for computation in module.computations.values()
        for i in computation.instructions
    ]
    tiles = [m for text in texts for m in re.findall(r"devices=\[[\d,]+\]<=\[([\d,]+)\]", text)]
    listed = [m for text in texts for m in re.findall(r"devices=\[([\d,]+)\]\d", text)]
    meshes = re.findall(r"#sdy\.mesh<\[([^\]]*)\]", module.header)
    axes = [",".join(re.findall(r"=(\d+)", mesh)) for mesh in meshes]
    return max((_product(t) for t in (*tiles, *listed, *axes)), default=1)


def _product(text: str) -> int:
    product = 1
    for number in filter(None, text.split(",")):
        product *= int(number)
    return product


def _has_manual_part(module: Module) -> bool:
    targets = {
        i.attributes.get("custom_call_target", "").strip('"')
        for computation in module.computations.values()
        for i in computation.instructions
    }
    return not targets.isdisjoint(_MANUAL)
