"""Pricing of plans by max-load and latency, and the static rules that they share: colocation, pins,
supported kinds, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int16, Int32

from go_rl.core import FREE, Evaluation, Problem, ProblemError, Status
from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.core.evaluation import ILLEGAL, OK, OUT_OF_MEMORY, STATUS_CODES, UNSUPPORTED
from go_rl.runtime.threads import on_threads

Price = Callable[[Any, Any, Any, Any], tuple[float, int]]
"""Compiled: prices a plan [N] by a `Placement`; fills [D] seconds and, as scratch, [D] bytes of
weights; returns seconds, inf where it is unusable, and an index into `STATUS_CODES`."""
NO_PIN = -1
"""`Placement.pin`: the node may sit anywhere."""


@dataclass(frozen=True, eq=False)
class Placement(CompiledStruct):
    """Arrays of a `Problem` that compiled code reads; ``N`` nodes, ``D`` devices, ``K`` kinds."""

    seconds: Float64[np.ndarray, "K N"]
    """[K, N] seconds of each node on each device kind; inf: cannot run."""
    kind: Int16[np.ndarray, "D"]
    """[D] row of `seconds`."""
    is_cpu: Bool[np.ndarray, "D"]
    """[D] the device is a CPU."""
    limit: Float64[np.ndarray, "D"]
    """[D] bytes of weights the device can hold; inf: not checked."""
    size: Float64[np.ndarray, "N"]
    """[N] bytes of weights."""
    transfer: Float64[np.ndarray, "N"]
    """[N] seconds to move the node's output between a device and host memory."""
    leader: Int32[np.ndarray, "N"]
    """[N] first node of the same colocation class; itself for a free node."""
    pin: Int16[np.ndarray, "N"]
    """[N] device that the user fixed, or `NO_PIN`."""
    senders: Int32[np.ndarray, "E"]
    """[E] producing node of each edge."""
    receivers: Int32[np.ndarray, "E"]
    """[E] consuming node of each edge."""
    consumer_offsets: Int32[np.ndarray, "N1"]
    """[N + 1] rows of `consumers`."""
    consumers: Int32[np.ndarray, "E"]
    """[E] consumers of each node."""


@lru_cache(maxsize=4)
def placement(problem: Problem) -> Placement:
    """Return the flat arrays of ``problem``, shared by all that price its plans."""
    graph, devices = problem.graph, problem.hardware.devices
    cpu = np.array([d.is_cpu for d in devices])
    memory = np.array([d.memory_bytes for d in devices], np.float64)
    offsets, edges = graph.successors
    pin = np.full(graph.num_nodes, NO_PIN, np.int16)
    for node, device in problem.fixed.items():
        pin[node] = device
    return Placement(
        seconds=np.ascontiguousarray(problem.seconds),
        kind=problem.device_kind,
        is_cpu=cpu,
        limit=np.where(cpu | (not problem.memory), np.inf, memory),
        size=problem.weight_bytes,
        transfer=problem.transfer_seconds,
        leader=_leaders(graph.colocation),
        pin=pin,
        senders=graph.senders,
        receivers=graph.receivers,
        consumer_offsets=offsets,
        consumers=graph.receivers[edges],
    )


def check_shape(problem: Problem, devices: Int16[np.ndarray, "..."]) -> None:
    """Raise a `ProblemError` unless the last axis of ``devices`` has one entry a node."""
    nodes = problem.graph.num_nodes
    if devices.shape[-1] != nodes:
        raise ProblemError(
            f"devices has {devices.shape[-1]} entries a plan; graph {problem.graph.name!r} has "
            f"{nodes} nodes, and each needs one"
        )


def price_batch(
    problem: Problem, devices: Int16[np.ndarray, "B N"], price: Price
) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
    """Price ``B`` plans at once.

    Returns:
        values [B] in seconds (inf where the plan is unusable) and indices [B] into `STATUS_CODES`.
    """
    check_shape(problem, devices)
    place, device = placement(problem), np.ascontiguousarray(devices)
    values, codes = np.full(len(device), np.inf), np.zeros(len(device), np.int8)

    def share(rows: range) -> None:
        loads, held = np.zeros((2, problem.hardware.num_devices))
        for b in rows:
            values[b], codes[b] = price(place, device[b], loads, held)

    on_threads(share, len(device))
    return values, codes


def price_plan(problem: Problem, device: Int16[np.ndarray, "N"], price: Price) -> Evaluation:
    """Price one plan in full."""
    check_shape(problem, device)
    none, num_devices = np.zeros(0), problem.hardware.num_devices
    loads, held = np.zeros((2, num_devices))
    value, code = price(placement(problem), np.ascontiguousarray(device), loads, held)
    held[:] = 0.0
    inside = (device >= 0) & (device < num_devices)
    np.add.at(held, device[inside], problem.weight_bytes[inside])
    resident = _resident(problem, device, inside)
    status = STATUS_CODES[code]
    return Evaluation(
        status=status,
        seconds=float(value),
        device_seconds=loads,
        link_seconds=none,
        link_bytes=none,
        weight_bytes=resident,
        streamed_bytes=np.zeros(num_devices),
        peak_bytes=resident,
        detail="" if status.ok else _explain(problem, device, held, status),
    )


def _resident(
    problem: Problem, device: Int16[np.ndarray, "N"], inside: Bool[np.ndarray, "N"]
) -> Float64[np.ndarray, "D"]:
    """[D] bytes of weights on each device, a tied array once."""
    held, devices = problem.held_weights, range(problem.hardware.num_devices)
    return np.array([held.total(inside & (device == d)) for d in devices], np.float64)


@compiled
@no_type_check
def static_status(place, device, held):
    """Status code of one plan [N] by the static rules; ``held`` [D] receives bytes of weights."""
    num_devices = place.kind.shape[0]
    held[:] = 0.0
    unsupported = False
    for n in range(device.shape[0]):
        d = device[n]
        if d < 0 or d >= num_devices or d != device[place.leader[n]]:
            return ILLEGAL
        if place.pin[n] != NO_PIN and place.pin[n] != d:
            return ILLEGAL
        if np.isinf(place.seconds[place.kind[d], n]):
            unsupported = True
        held[d] += place.size[n]
    if unsupported:
        return UNSUPPORTED
    for d in range(num_devices):
        if held[d] > place.limit[d]:
            return OUT_OF_MEMORY
    return OK


def _leaders(colocation: Int32[np.ndarray, "N"]) -> Int32[np.ndarray, "N"]:
    leader = np.arange(len(colocation), dtype=np.int32)
    bound = np.flatnonzero(colocation != FREE)
    if bound.size:
        _, first, inverse = np.unique(colocation[bound], return_index=True, return_inverse=True)
        leader[bound] = bound[first][inverse.reshape(-1)]
    return leader


def _explain(
    problem: Problem, device: Int16[np.ndarray, "N"], held: Float64[np.ndarray, "D"], status: Status
) -> str:
    place, names = placement(problem), problem.graph.names
    if status is Status.OUT_OF_MEMORY:
        d = int(np.flatnonzero(held > place.limit)[0])
        return f"device {d} holds {held[d]:.0f} bytes of weights; it has {place.limit[d]:.0f}"
    num_devices = len(place.kind)
    outside = np.flatnonzero((device < 0) | (device >= num_devices))
    if outside.size:
        n = int(outside[0])
        return f"node {names[n]!r} is on device {device[n]}; devices are 0..{num_devices - 1}"
    if status is Status.UNSUPPORTED:
        n = int(
            np.flatnonzero(np.isinf(place.seconds[place.kind[device], np.arange(len(device))]))[0]
        )
        return f"node {names[n]!r} is on device {device[n]}, which cannot run it"
    apart = np.flatnonzero(device != device[place.leader])
    if apart.size:
        n = int(apart[0])
        return f"nodes {names[n]!r} and {names[place.leader[n]]!r} must share a device"
    moved = np.flatnonzero((place.pin != NO_PIN) & (place.pin != device))
    if moved.size:
        n = int(moved[0])
        return f"node {names[n]!r} is fixed to device {place.pin[n]}, not {device[n]}"
    return "the accelerators' subgraphs and the CPU nodes form a cycle: one is not contiguous"
