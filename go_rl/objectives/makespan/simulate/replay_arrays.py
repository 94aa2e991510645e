"""Arrays of a problem that the compiled replay reads: tensors, devices, engines and links as flat
arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from go_rl.core import OpKind, Problem
from go_rl.core.compiled_struct import CompiledStruct
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.objectives.common.tensors import tensor_rows


@dataclass(frozen=True, eq=False)
class ReplayArrays(CompiledStruct):
    """``N`` nodes, ``T`` tensors (a node's result number i), ``D`` devices, ``R`` engine pools."""

    device_kind: Int64[np.ndarray, "D"]
    """[D] row of the prices."""
    capacity: Float64[np.ndarray, "D"]
    """[D] bytes; inf: not checked."""
    bandwidth: Float64[np.ndarray, "D D"]
    """[D, D] bytes/s of the link from the first to the second."""
    latency: Float64[np.ndarray, "D D"]
    """[D, D] seconds, of the whole route."""
    hop: Int64[np.ndarray, "D D"]
    """[D, D] device that the first sends to when the second is the destination."""
    most_hops: int
    """Links on the longest route."""
    channel: Int64[np.ndarray, "D D"]
    """[D, D] number of what carries one tensor at a time, in `LinkTable`."""
    channels: int
    """Their number."""
    pool: Int64[np.ndarray, "D kinds"]
    """[D, OpKind] engine pool that runs a kind of operator on a device."""
    engines: Int64[np.ndarray, "R"]
    """[R] engines of each pool."""
    split: Bool[np.ndarray, "R"]
    """[R] whether an operator is cut into equal parts, one for each engine."""
    op_kind: Int64[np.ndarray, "N"]
    """[N] `OpKind` of each node."""
    heavy: Bool[np.ndarray, "N"]
    """[N] matrix products and convolutions, which decide the pool of a fused kernel."""
    fed: Bool[np.ndarray, "N"]
    """[N] inputs and constants: on every consumer's device from the start."""
    gap: Float64[np.ndarray, "N"]
    """[N] seconds after each node before its engine and its consumers go on."""
    tensor_of: Int64[np.ndarray, "N1"]
    """[N + 1] first tensor of each node."""
    tensor_bytes: Float64[np.ndarray, "T"]
    """[T] bytes of each tensor."""
    use_ptr: Int64[np.ndarray, "T1"]
    """[T + 1] rows of `user`."""
    user: Int32[np.ndarray, "E"]
    """[E] consumers of each tensor, ascending."""
    extra_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of results that no node reads."""
    is_output: Bool[np.ndarray, "N"]
    """[N] results stay to the end."""
    own_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of weights that no other node reads."""
    tied_ptr: Int64[np.ndarray, "N1"]
    """[N + 1] rows of `tied_array`."""
    tied_array: Int32[np.ndarray, "X"]
    """[X] tied arrays that each node reads; a device keeps one copy of each."""
    tied_bytes: Float64[np.ndarray, "A"]
    """[A] bytes of each tied array."""


def replay_arrays(problem: Problem) -> ReplayArrays:
    """Lay out a problem for the compiled replay."""
    graph, devices = problem.graph, problem.hardware.devices
    tensors, held = tensor_rows(problem), problem.held_weights
    pool, engines, split = _pools(problem)
    limit = np.array([c.memory_bytes for c in devices])
    gap, links = problem.gap_seconds, problem.hardware.link_table
    return ReplayArrays(
        device_kind=problem.device_kind.astype(np.int64),
        capacity=limit if problem.memory else np.full(len(limit), np.inf),
        bandwidth=links.bandwidth,
        latency=links.latency,
        hop=links.hop,
        most_hops=links.most_hops,
        channel=links.channel,
        channels=links.channels,
        pool=pool,
        engines=engines,
        split=split,
        op_kind=graph.kind.astype(np.int64),
        heavy=heavy_nodes(graph),
        fed=graph.is_fed,
        gap=np.zeros(graph.num_nodes) if gap is None else gap,
        tensor_of=tensors.first,
        tensor_bytes=tensors.size,
        use_ptr=tensors.use_ptr,
        user=tensors.user,
        extra_bytes=np.maximum(problem.output_bytes - tensors.made, 0.0),
        is_output=graph.is_output,
        own_bytes=held.own,
        tied_ptr=held.offsets,
        tied_array=held.array,
        tied_bytes=held.tied,
    )


def _pools(
    problem: Problem,
) -> tuple[Int64[np.ndarray, "D kinds"], Int64[np.ndarray, "R"], np.ndarray]:
    table = np.zeros((problem.hardware.num_devices, len(OpKind)), np.int64)
    engines: list[int] = []
    split: list[bool] = []
    for number, device in enumerate(problem.hardware.devices):
        for kind in OpKind:
            table[number, kind] = len(engines) + device.engine_of(kind)
        engines += [e.count for e in device.engine_list]
        split += [e.split for e in device.engine_list]
    return table, np.array(engines, np.int64), np.array(split, np.bool_)
