"""`make_problem`: a graph on hardware, priced, in the hardware's number format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64, Int8

from go_rl.core import (
    DECISIONS,
    FREE,
    MAX_DEVICES,
    Device,
    Hardware,
    HardwareError,
    Links,
    Objective,
    OpGraph,
    Problem,
    ProblemError,
    Rules,
    Topology,
    decision_names,
    rule_set,
)
from go_rl.core.hardware.supported import supported
from go_rl.costs.models.analytical import Analytical, unstated_rates
from go_rl.costs.models.auto import AutoCost, auto_cost
from go_rl.costs.models.cost_model import CostModel, GraphCostModel, Kernels
from go_rl.costs.models.fused import FusedPrices
from go_rl.costs.models.gpus.learned_gpus import LearnedGpus
from go_rl.costs.models.profiled import Profiled, profile_for
from go_rl.graphs.cutting.colocation import with_colocation

RATED_MODELS = (Analytical, LearnedGpus)
"""Cost models that read a device's rates by element type."""


@dataclass(frozen=True)
class ProblemOptions:
    """Options of a problem beside graph and hardware."""

    objective: Objective = Objective.RING
    rules: Rules = field(default_factory=lambda: rule_set("default"))
    memory: bool | None = None
    """None: on, unless a profile is used on another machine than its own."""
    all_chips: bool = False
    fixed: Mapping[int, int] = field(default_factory=dict)
    cost_model: CostModel | None = None
    """None: `go_rl.costs.models.auto.auto_cost`."""
    colocation: str = "graph"
    """Colocation classes: the graph's, those and gradients with their operators, or none; see
    `go_rl.graphs.cutting.colocation`."""
    decisions: str | tuple[str, ...] | None = None
    """Makespan only: some of `go_rl.core.DECISIONS`, as names or with commas between; None: all
    that make sense, which is all but placement on a single device."""
    gap_seconds: Float64[np.ndarray, "N"] | None = None
    """[N] see `Problem.gap_seconds`."""
    allow_training: bool = False
    """Ring only: accept a graph with backward nodes."""


def make_problem(
    graph: OpGraph, hardware: Hardware, options: ProblemOptions | None = None
) -> Problem:
    """Return the priced problem.

    Raises:
        ProblemError: a training graph on a ring, hardware and objective do not fit, or the cost
            model gives no seconds, negative ones or NaN.
    """
    options = options or ProblemOptions()
    if options.objective.traits.is_pipeline and graph.is_backward.any():
        _refuse_training(graph, options)
    graph = with_colocation(graph, options.colocation)
    model, why = AutoCost(options.cost_model) if options.cost_model else auto_cost(graph, hardware)
    memory = options.memory
    foreign = isinstance(model, Profiled) and not _is_own_hardware(graph, hardware)
    if memory is None:
        memory = not foreign
    weights = _rescaled(graph.weight_bytes, graph.weight_itemsize, hardware)
    streamed = _streamed(graph, weights, hardware, options.objective, memory)
    kernels = Kernels(
        graph=graph,
        kind=graph.kind,
        flops=graph.flops,
        bytes_accessed=_rescaled(graph.bytes_accessed, graph.output_itemsize, hardware),
        streamed_bytes=streamed,
        element_type=_product_types(graph, hardware),
    )
    devices = {device.kind: device for device in hardware.devices}
    output_bytes = _rescaled(graph.output_bytes, graph.output_itemsize, hardware)
    edge_bytes = _rescaled(graph.edge_bytes, graph.output_itemsize[graph.senders], hardware)
    kinds = tuple(devices[kind] for kind in hardware.kinds)
    seconds = np.stack([_priced(model, kernels, device) for device in kinds])
    seconds = np.where(supported(graph, kernels.element_type, kinds), seconds, np.inf)
    said = (*_said(model, kernels, kinds), *_unstated(model, kernels, kinds))
    asked = None if options.decisions is None else decision_names(options.decisions)
    several = options.objective.traits.decides_several
    decisions = _decisions(asked, hardware) if several else DECISIONS
    return Problem(
        graph=graph,
        hardware=hardware,
        objective=options.objective,
        rules=options.rules,
        seconds=seconds,
        cost_model=model.name,
        output_bytes=output_bytes,
        weight_bytes=np.where(streamed > 0, 0.0, weights),
        tied_bytes=_tied(graph, hardware),
        streamed_bytes=streamed,
        edge_bytes=edge_bytes,
        transfer_seconds=_transfers(graph, hardware, output_bytes),
        memory=memory,
        all_chips=options.all_chips,
        fixed=_fixed(graph, options, decisions),
        decisions=decisions,
        notes=(*_notes(graph, hardware, model, memory, streamed), *why, *said),
        dims=dict(graph.meta.get("dims", {})),
        kernels=FusedPrices(kernels, seconds, edge_bytes, model, kinds) if several else None,
        gap_seconds=options.gap_seconds,
    )


def _priced(model: CostModel, kernels: Kernels, device: Device) -> Float64[np.ndarray, "N"]:
    """Seconds of every node on a device, checked because a user's cost model may be wrong."""
    graph, said = kernels.graph, f"cost model {model.name!r} on device {device.kind!r}"
    given = model.seconds(kernels, device)
    try:
        seconds = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{said}: gives no array of seconds ({error})") from error
    if seconds.shape != (graph.num_nodes,):
        raise ProblemError(
            f"{said}: gives seconds of shape {list(seconds.shape)}; graph {graph.name!r} has "
            f"{graph.num_nodes} nodes, so it must be [{graph.num_nodes}]"
        )
    if (wrong := np.flatnonzero(~(seconds >= 0))).size:
        name = graph.names[int(wrong[0])]
        raise ProblemError(
            f"{said}: gives node {name!r} {seconds[wrong[0]]} s; it must be >= 0, or inf where the "
            "device cannot run it"
        )
    return seconds


def _decisions(asked: tuple[str, ...] | None, hardware: Hardware) -> tuple[str, ...]:
    one = hardware.num_devices == 1
    if asked is None:
        return DECISIONS[1:] if one else DECISIONS
    if one and "placement" in asked:
        raise ProblemError(
            f"placement needs two devices or more; {hardware.name!r} has one: leave it out, or "
            "choose a larger hardware such as p100x4"
        )
    return asked


def _fixed(graph: OpGraph, options: ProblemOptions, decisions: tuple[str, ...]) -> dict[int, int]:
    """The user's pins; without the decision placement every other node is on the first device."""
    if not options.objective.traits.decides_several or "placement" in decisions:
        return dict(options.fixed)
    group_device = {
        int(graph.colocation[node]): device
        for node, device in options.fixed.items()
        if graph.colocation[node] != FREE
    }
    mates = [group_device.get(int(label), 0) for label in graph.colocation]
    return {node: options.fixed.get(node, mate) for node, mate in enumerate(mates)}


def file_hardware(graph: OpGraph) -> Hardware | None:
    """Return the hardware that a file of dnn-partitioning or Piper brings with it, or None."""
    meta = graph.meta
    if "accelerators" not in meta:
        return None
    accelerators, cpus = int(meta["accelerators"]), int(meta.get("cpus", 0))
    if not 1 <= accelerators + cpus <= MAX_DEVICES or min(accelerators, cpus) < 0:
        raise HardwareError(
            f"{graph.name!r} brings {accelerators} accelerators and {cpus} CPUs; hardware has 1 "
            f"to {MAX_DEVICES} devices: name another one"
        )
    # No memory at all is a limit, too: nothing that has a size fits. Devices have more than none.
    limit = max(float(meta.get("memory_bytes", 1e18)), np.finfo(float).tiny)
    accelerator = Device("accelerator", 1e12, limit, 1e12)
    cpu = Device("cpu", 1e11, 1e18, 1e11, is_cpu=True)
    return Hardware(
        name="file",
        devices=(accelerator,) * accelerators + (cpu,) * cpus,
        links=Links(Topology.FULL, 1e10, 0.0),
        description="the accelerators and CPUs that the model file names; only its profile counts",
    )


def _refuse_training(graph: OpGraph, options: ProblemOptions) -> None:
    if not options.allow_training:
        name = graph.names[int(np.flatnonzero(graph.is_backward)[0])]
        raise ProblemError(
            f"graph {graph.name!r} is a training graph (node {name!r} belongs to the backward "
            "pass), and a ring moves data one way only; give the inference graph, or "
            "--objective max-load"
        )


def _is_own_hardware(graph: OpGraph, hardware: Hardware) -> bool:
    own = file_hardware(graph)
    return own is not None and own.to_json()["devices"] == hardware.to_json()["devices"]


def _rescaled(
    size: Float64[np.ndarray, "X"], itemsize: Float64[np.ndarray, "X"], hardware: Hardware
) -> Float64[np.ndarray, "X"]:
    if hardware.element_bytes is None:
        return np.array(size)
    known = itemsize > 0
    return np.where(known, size / np.where(known, itemsize, 1.0) * hardware.element_bytes, size)


def _tied(graph: OpGraph, hardware: Hardware) -> Float64[np.ndarray, "A"]:
    """[A] bytes of tied arrays, their elements as large as those of their first reader."""
    itemsize = np.zeros(len(graph.tied_bytes))
    itemsize[graph.tied_array[::-1]] = graph.weight_itemsize[graph.tied_node[::-1]]
    return _rescaled(graph.tied_bytes, itemsize, hardware)


def _streamed(
    graph: OpGraph,
    weights: Float64[np.ndarray, "N"],
    hardware: Hardware,
    objective: Objective,
    memory: bool,
) -> Float64[np.ndarray, "N"]:
    """An operator whose weights alone exceed a device's memory streams what it reads from the
    host: all, but of a table only the rows that it looks up."""
    if not (memory and objective.traits.is_pipeline):
        return np.zeros_like(weights)
    smallest = min(device.memory_bytes for device in hardware.devices)
    held = np.where(graph.weight_bytes > 0, graph.weight_bytes, 1.0)
    return np.where(weights > smallest, weights * (graph.weight_bytes_read / held), 0.0)


def _transfers(
    graph: OpGraph, hardware: Hardware, output_bytes: Float64[np.ndarray, "N"]
) -> Float64[np.ndarray, "N"]:
    if graph.transfer_seconds is not None:
        return np.array(graph.transfer_seconds)
    seconds = output_bytes / hardware.links.bandwidth
    return np.where(output_bytes > 0, seconds + hardware.links.latency_seconds, 0.0)


def _said(model: CostModel, kernels: Kernels, devices: tuple[Device, ...]) -> tuple[str, ...]:
    if not isinstance(model, GraphCostModel):
        return ()
    return tuple(dict.fromkeys(note for device in devices for note in model.notes(kernels, device)))


def _product_types(graph: OpGraph, hardware: Hardware) -> Int8[np.ndarray, "N"] | None:
    """Element types of products that are not in float32; None: there are none, or the hardware
    computes in a format of its own."""
    own_format = hardware.element_bytes is not None
    return None if own_format or not graph.product_type.any() else graph.product_type


def _unstated(model: CostModel, kernels: Kernels, devices: tuple[Device, ...]) -> tuple[str, ...]:
    return unstated_rates(kernels, devices) if isinstance(model, RATED_MODELS) else ()


def _notes(
    graph: OpGraph, hardware: Hardware, model: CostModel, memory: bool, streamed: np.ndarray
) -> tuple[str, ...]:
    notes = [str(note) for note in graph.meta.get("notes", ())]
    if isinstance(model, Profiled):
        used = sorted({profile_for(device, tuple(graph.seconds)) for device in hardware.devices})
        notes.append(f"Operator times are the graph's own profile ({', '.join(used)}).")
        if not graph.edge_bytes.any():
            notes.append("The profile has no tensor sizes: traffic on ring links is not priced.")
        if not memory:
            notes.append("Memory is not checked: a profile's sizes belong to its own machine.")
    for node in np.flatnonzero(streamed > 0)[:8]:
        notes.append(
            f"Node {graph.names[node]!r} streams {streamed[node] / 1e6:.1f} MB of weights from the "
            "host every step: they exceed a device's memory."
        )
    return tuple(notes)
