"""`placed_file`: a file of StableHLO whose operators are on the devices of a plan.

XLA's translation gives each node of the graph the location of its operator, so that numbers as
locations tell which operator a node is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

# jax exports no public way to MLIR's operations.
from jaxlib.mlir import ir

from go_rl.core import OpGraph, OpKind
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.graphs.readers.file_errors import read_bytes
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import (
    is_stablehlo_bytecode,
    mlir_context,
    plain_module,
)
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_reader import read_stablehlo
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_sizes import has_unknown_sizes, with_sizes
from go_rl.graphs.readers.model_options import TRIP_COUNT
from go_rl.plans.sinks.iree.transfers import (
    EVERYWHERE,
    all_operations,
    locate,
    module_text,
    transfer,
)
from go_rl.plans.sinks.placed import Placed

TAG = "go_rl_operation_"
"""Begins the location of an operator while its node is looked for; its number follows."""


def placed_file(plan: Placed, path: Path, dims: Mapping[str, int]) -> str:
    """Return the module of a file with transfers.

    Args:
        plan: for the file's graph.
        path: of StableHLO, as text, bytecode or an export of JAX.
        dims: sizes and trips that the graph was read with.

    Raises:
        SplitError: the file is of another graph, or the nodes of one operator, such as a call, are
            on several devices.
        ReadError: the file cannot be read.
    """
    sizes = {name: size for name, size in dims.items() if name != TRIP_COUNT}
    with mlir_context() as context, ir.Location.unknown(context):
        context.allow_unregistered_dialects = True
        module = _parsed(path, sizes)
        for number, operation in enumerate(all_operations(module.operation)):
            operation.location = ir.Location.name(f"{TAG}{number}")
        main: Any = ir.SymbolTable(module.operation)["main"]
        with scratch_folder("iree") as folder:
            tagged = folder / path.with_suffix(".mlir").name
            tagged.write_text(module.operation.get_asm(enable_debug_info=True))
            graph = read_stablehlo(tagged, "bytes", trip_count=dims.get(TRIP_COUNT))
        nodes = _nodes(plan, graph, path)
        _place(plan, main, nodes)
        first = {number: str(plan.graph.names[inside[0]]) for number, inside in nodes.items()}
        for operation in all_operations(module.operation):
            locate(operation, first.get(_number(operation)))
        return module_text(module)


def _parsed(path: Path, sizes: Mapping[str, int]) -> Any:
    content = read_bytes(path)
    module: bytes | str = content.decode() if not is_stablehlo_bytecode(content) else (
        plain_module(content)
    )  # fmt: skip
    parsed: Any = ir.Module.parse(module)
    text = parsed.operation.get_asm(large_elements_limit=16)
    return ir.Module.parse(with_sizes(module, text, sizes)) if has_unknown_sizes(text) else parsed


def _nodes(plan: Placed, tagged: OpGraph, path: Path) -> dict[int, list[int]]:
    """Nodes of the plan's graph by the operator, or the call, that they are in."""
    mine = np.flatnonzero(plan.graph.kind != int(OpKind.INPUT)).tolist()
    theirs = np.flatnonzero(tagged.kind != int(OpKind.INPUT)).tolist()
    alike = [plan.graph.op_type[n] for n in mine] == [tagged.op_type[n] for n in theirs]
    if not alike:
        raise plan.error(
            f"is of another model than {path}: the plan's graph {plan.graph.name!r} has "
            f"{len(mine)} operators, the file {len(theirs)}"
        )
    found: dict[int, list[int]] = {}
    for node, other in zip(mine, theirs, strict=True):
        match = re.match(rf"{TAG}(\d+)", str(tagged.names[other]))
        if match is not None:  # others are constants that XLA made
            found.setdefault(int(match[1]), []).append(node)
    return found


def _number(operation: Any) -> int:
    match = re.search(rf"{TAG}(\d+)", str(operation.location))
    return int(match[1]) if match else -1


def _place(plan: Placed, main: Any, nodes: Mapping[int, list[int]]) -> None:
    """Insert transfers before the operators of a function, in their order."""
    home: dict[Any, int] = {}
    there: dict[tuple[Any, int], Any] = {}
    for operation in [each.operation for each in main.regions[0].blocks[0].operations]:
        inside = list(all_operations(operation))
        known = [(each, i, value) for each in inside for i, value in enumerate(each.operands)]
        devices = sorted({int(plan.device[n]) for n in nodes.get(_number(operation), ())})
        if len(devices) > 1:
            names = [str(plan.graph.names[n]) for n in nodes[_number(operation)]]
            raise plan.error(
                f"cannot put one {operation.name} on devices {devices}: its parts are {names[0]!r} "
                f"to {names[-1]!r}; pin them together (--fixed)"
            )
        homes = [home[value] for _, _, value in known if home.get(value, -1) != EVERYWHERE]
        device = devices[0] if devices else (homes or [EVERYWHERE])[0]
        if operation.name != "func.return" and device != EVERYWHERE:
            for reader, place, value in known:
                if value not in home and not _is_argument(value, main):
                    continue  # of the operator's own region
                if home.get(value) in (device, EVERYWHERE):
                    continue
                if (value, device) not in there:
                    with ir.InsertionPoint(operation):
                        there[value, device] = transfer(value, device)
                reader.operands[place] = there[value, device]
        home.update((result, device) for result in operation.results)


def _is_argument(value: Any, main: Any) -> bool:
    return any(value == argument for argument in main.regions[0].blocks[0].arguments)
