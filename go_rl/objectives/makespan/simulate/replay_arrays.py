"""Arrays of a problem that the compiled replay reads: tensors, devices, engines and links as flat
arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from go_rl.core import OpKind, Problem
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.objectives.common.tensors import tensor_rows


class ReplayArrays(NamedTuple):
    """``N`` nodes, ``T`` tensors (a node's result number i), ``D`` devices, ``R`` engine pools."""

    device_kind: np.ndarray
    """[D] row of the prices."""
    capacity: np.ndarray
    """[D] bytes; inf: not checked."""
    bandwidth: float
    """Bytes/s of a link."""
    latency: float
    """Seconds."""
    pool: np.ndarray
    """[D, OpKind] engine pool that runs a kind of operator on a device."""
    engines: np.ndarray
    """[R] engines of each pool."""
    split: np.ndarray
    """[R] whether an operator is cut into equal parts, one for each engine."""
    op_kind: np.ndarray
    """[N] `OpKind`."""
    heavy: np.ndarray
    """[N] matrix products and convolutions, which decide the pool of a fused kernel."""
    fed: np.ndarray
    """[N] inputs and constants: on every consumer's device from the start."""
    gap: np.ndarray
    """[N] seconds after each node before its engine and its consumers go on."""
    tensor_of: np.ndarray
    """[N + 1] first tensor of each node."""
    tensor_bytes: np.ndarray
    """[T]."""
    use_ptr: np.ndarray
    """[T + 1] rows of `user`."""
    user: np.ndarray
    """[E] consumers of each tensor, ascending."""
    extra_bytes: np.ndarray
    """[N] bytes of results that no node reads."""
    is_output: np.ndarray
    """[N] results stay to the end."""
    own_bytes: np.ndarray
    """[N] bytes of weights that no other node reads."""
    tied_ptr: np.ndarray
    """[N + 1] rows of `tied_array`."""
    tied_array: np.ndarray
    """[R] tied arrays that each node reads; a device keeps one copy of each."""
    tied_bytes: np.ndarray
    """[A]."""


def replay_arrays(problem: Problem) -> ReplayArrays:
    """Lay out a problem for the compiled replay."""
    graph, devices = problem.graph, problem.hardware.devices
    tensors, held = tensor_rows(problem), problem.held_weights
    pool, engines, split = _pools(problem)
    limit = np.array([c.memory_bytes for c in devices])
    gap = problem.gap_seconds
    return ReplayArrays(
        device_kind=problem.device_kind.astype(np.int64),
        capacity=limit if problem.memory else np.full(len(limit), np.inf),
        bandwidth=problem.hardware.links.bandwidth,
        latency=problem.hardware.links.latency_seconds,
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
