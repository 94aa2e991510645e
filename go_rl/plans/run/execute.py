"""`execute`: run a JAX function by a plan, check that all results exist, and time it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from go_rl.core import ExecutionError, Hardware, OpGraph, Plan, PlanError
from go_rl.core.graph.op_kind import IS_FREE
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.stages import jax_program
from go_rl.plans.run.devices import Chosen, choose_devices
from go_rl.plans.run.placed_program import PlacedProgram
from go_rl.plans.run.segments import cut_segments
from go_rl.verify.check_plan import check_same_graph


@dataclass(frozen=True, eq=False)
class Executed:
    """An executed iteration."""

    outputs: Any
    """Results of the function, each array on the device that made it."""
    seconds: float
    """Median of the timed iterations, from the start until all results are there. Arguments are on
    their devices before."""
    devices: Mapping[int, jax.Device]
    """JAX device of each device of the plan in use."""
    segments: int
    """Programs that an iteration runs."""
    note: str
    """Why `seconds` may be unreliable, or empty."""


def execute(
    plan: Plan,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Collection[int] | None = None,
    options: JaxOptions | None = None,
    repeats: int = 5,
    share: bool = False,
) -> Executed:
    """Run ``function(*args, **kwargs)`` on the devices that a plan names, and time it.

    Args:
        plan: for the graph that `go_rl.trace` makes of the same function, arguments and weights.
        function, args, kwargs, weights, options: as for
            `go_rl.graphs.readers.jax.reader.trace_jax`;
            arguments hold real arrays.
        repeats: timed steps, after one that compiles and one to warm up.
        share: see `choose_devices`.

    Raises:
        PlanError: the plan is for another graph, or a failure.
        ExecutionError: too few devices.
        ReadError: the function cannot be traced or cut (see `jax_program`).
    """
    if repeats < 1:
        raise ExecutionError(f"repeats must be at least 1, not {repeats}")
    program, chosen = place_function(
        plan, function, args, kwargs, weights=weights, options=options, share=share
    )
    arguments = program.place(*args, **(kwargs or {}))
    for _ in range(2):
        outputs = jax.block_until_ready(program.step(arguments))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        outputs = jax.block_until_ready(program.step(arguments))
        times.append(time.perf_counter() - start)
    seconds = float(np.median(times))
    return Executed(outputs, seconds, chosen.devices, program.num_segments, chosen.note)


def place_function(
    plan: Plan,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Collection[int] | None = None,
    options: JaxOptions | None = None,
    share: bool = False,
) -> tuple[PlacedProgram, Chosen]:
    """Return the function as a plan has it, to be called again and again, and where its parts run.

    Nodes of one device run as few programs, in which XLA fuses and orders as it likes: fused
    kernels of the plan stay within one program, its priorities are not enforced. Copies that a
    plan for a ring makes of nodes are not made.

    Arguments and errors are as for `execute`; ``args`` may be abstract.
    """
    if not plan.evaluation.status.ok:
        raise PlanError(f"the plan is a failure, not one to follow: {plan.evaluation.status}")
    traced = jax_program(function, args, kwargs, weights=weights, options=options)
    _check_is_for(plan, traced.graph)
    hardware = Hardware.from_json(plan.on_its_hardware().hardware)
    runs = ~IS_FREE[traced.graph.kind]
    segments = cut_segments(traced.graph, plan.device, plan.fusion_group)
    used = {*plan.device[runs].tolist(), *segments.device.tolist()}
    chosen = choose_devices(hardware, used, share)
    return PlacedProgram(traced, segments, chosen.devices), chosen


def _check_is_for(plan: Plan, graph: OpGraph) -> None:
    hint = "trace the function with the same arguments, weights and options as for the plan"
    try:
        check_same_graph(plan, graph)
    except PlanError as error:
        raise PlanError(f"{error}; {hint}") from error
    if plan.fusion_group is not None and len(plan.fusion_group) != graph.num_nodes:
        raise PlanError(
            f"the plan is for another graph: fusion_group has {len(plan.fusion_group)} entries, "
            f"{graph.name!r} has {graph.num_nodes} nodes; {hint}"
        )
