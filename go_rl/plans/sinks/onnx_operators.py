"""Operators of an ONNX file by a plan's devices, for sinks that number or name them.

A node of the graph is an operator of the file, or a part of one: a step of an LSTM, a node in a
branch of an ``If``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from go_rl.graphs.readers.onnx.load import load_frugally
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.onnx_stages import check_same_model, places
from go_rl.plans.splits.split import SplitContext


def operator_devices(plan: Placed) -> dict[int, int]:
    """Return the device of each operator of the file, by its number.

    Raises:
        SplitError: parts of one operator are on several devices.
    """
    device: dict[int, int] = {}
    place = places(plan.graph)
    for node in np.flatnonzero((place != NOWHERE) & plan.fixed).tolist():
        number, own = int(place[node]), int(plan.device[node])
        if device.setdefault(number, own) != own:
            raise plan.error(
                f"gives an operator one device, and the parts of {plan.graph.source[node]} are on "
                f"devices {device[number]} and {own}; optimize with --colocate operators"
            )
    return device


def devices_by_name(plan: Placed, model: str | Path | None, needs_names: bool) -> dict[str, int]:
    """Return the device of each operator by the name that it has in the model's file.

    Args:
        plan: see there.
        model: ONNX file that the plan's graph was read from; None: the graph's names count.
        needs_names: whether the tool cannot name an operator without a name by its first result.

    Raises:
        ReadError: the file cannot be read.
        SplitError: the file is another model's, parts of one operator are on several devices, or
            an operator has no name, or that of another.
    """
    if model is None:
        nodes = np.flatnonzero(plan.fixed).tolist()
        return {str(plan.graph.names[node]): int(plan.device[node]) for node in nodes}
    file = load_frugally(Path(model))
    check_same_model(SplitContext(plan.graph, plan.hardware, str(model)), file, places(plan.graph))
    found: dict[str, int] = {}
    owner: dict[str, int] = {}
    for number, device in sorted(operator_devices(plan).items()):
        name = _name(plan, file.graph.node, number, needs_names)
        if owner.setdefault(name, number) != number:
            raise plan.error(
                f"goes by the names of operators, and operators {owner[name]} and {number} of "
                f"{model} are both called {name!r}; give every operator a name of its own"
            )
        found[name] = device
    return found


def _name(plan: Placed, operators: Sequence[onnx.NodeProto], number: int, needs_names: bool) -> str:
    operator = operators[number]
    if operator.name:
        return operator.name
    first = next((result for result in operator.output if result), "")
    if needs_names:
        raise plan.error(
            f"goes by the names of operators, and operator {number} ({operator.op_type}, which "
            f"makes {first!r}) has none; give every operator of the model a name"
        )
    return first
