"""Memory of each device over a replayed step, and which copies of tensors take it.

Letters as in `Jobs`: ``N`` nodes, ``J`` jobs, ``C`` copies, ``U`` uses; ``D`` devices, ``S``
moments at which a device's memory changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.objectives.makespan.simulate.jobs import NOBODY, Jobs
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays
from go_rl.objectives.makespan.simulate.replay_state import Trace


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """Memory of a device as steps: from ``seconds[i]`` on, ``bytes[i]`` are in use."""

    seconds: Float64[np.ndarray, "S"]
    """[S] ascending, from 0."""
    bytes: Float64[np.ndarray, "S"]
    """[S] bytes in use."""


class TensorCopies(NamedTuple):
    """The copies of tensors of one plan, numbered as in its `Jobs`."""

    node: Int64[np.ndarray, "C"]
    """[C] producing node; `NOBODY`: fed by the host."""
    device: Int64[np.ndarray, "C"]
    """[C] device of each copy."""
    bytes: Float64[np.ndarray, "C"]
    """[C] bytes of each copy."""
    kernel: Int64[np.ndarray, "C"]
    """[C] kernel of the producing node."""
    home: Int64[np.ndarray, "C"]
    """[C] the copy on the producer's device."""
    arrives: Bool[np.ndarray, "C"]
    """[C] brought by a transfer."""
    stays: Bool[np.ndarray, "C"]
    """[C] a result of the model."""
    use_kernel: Int64[np.ndarray, "U"]
    use_copy: Int64[np.ndarray, "U"]
    """[U] who reads what."""


def read_copies(a: ReplayArrays, jobs: Jobs) -> TensorCopies:
    """List the copies of a plan from its jobs as laid out, before they ran."""
    count = int(jobs.copies[0])
    kernel, home = jobs.copy_kernel[:count], jobs.copy_home[:count]
    made = kernel != NOBODY
    arrives = made & (home != np.arange(count))
    # Copies at home are numbered by producer and result, those of inputs and constants aside.
    producer = np.repeat(np.arange(len(a.fed)), np.diff(a.tensor_of))
    node = np.full(count, NOBODY)
    node[made & ~arrives] = producer[~a.fed[producer]]
    node[arrives] = node[home[arrives]]
    uses = int(jobs.uses[0])
    holders = np.bincount(jobs.use_copy[:uses], minlength=count)
    holders += np.bincount(home[arrives], minlength=count)
    return TensorCopies(
        node=node,
        device=jobs.copy_device[:count],
        bytes=jobs.copy_bytes[:count],
        kernel=kernel,
        home=home,
        arrives=arrives,
        stays=jobs.copy_left[:count] > holders,
        use_kernel=jobs.use_kernel[:uses],
        use_copy=jobs.use_copy[:uses],
    )


def job_times(
    a: ReplayArrays, jobs: Jobs, trace: Trace
) -> tuple[Float64[np.ndarray, "J"], Float64[np.ndarray, "J"]]:
    """Return [J] when each job begins, and when its results are there."""
    begins, ends = np.full(len(jobs.pool), np.inf), np.full(len(jobs.pool), -np.inf)
    np.minimum.at(begins, trace.job, trace.start)
    np.maximum.at(ends, trace.job, trace.end)
    ends[len(a.fed) :] += jobs.delay[len(a.fed) :]
    return begins, ends


def memory_use(
    a: ReplayArrays, device: Int64[np.ndarray, "N"], jobs: Jobs, copies: TensorCopies, trace: Trace
) -> tuple[MemoryUse, ...]:
    """Return [D] memory over time of the plan with these [N] devices, from a trace of it."""
    spans = memory_spans(a, device, jobs, copies, trace)
    return tuple(use_of(spans, d, weights) for d, weights in enumerate(trace.weights.tolist()))


class Spans(NamedTuple):
    """Spans of time in which arrays beside the weights take memory; ``X`` spans."""

    node: Int64[np.ndarray, "X"]
    """[X] producing node, or the lowest of its kernel; `NOBODY`: fed by the host."""
    device: Int64[np.ndarray, "X"]
    """[X] device of each span."""
    begins: Float64[np.ndarray, "X"]
    ends: Float64[np.ndarray, "X"]
    """[X] seconds; inf: stays to the end."""
    bytes: Float64[np.ndarray, "X"]
    """[X] bytes of each span."""


def memory_spans(
    a: ReplayArrays, device: Int64[np.ndarray, "N"], jobs: Jobs, copies: TensorCopies, trace: Trace
) -> Spans:
    """Return when each copy of a tensor, and each result that no node reads, takes memory.

    A copy lives from the start of its maker until its last reader or transfer has ended; results
    that nobody reads while their kernel runs, those of the model to the end.
    """
    begins, ends = job_times(a, jobs, trace)
    nodes, number = len(jobs.made_head), np.arange(len(copies.device))
    maker = np.where(copies.arrives, nodes + number, copies.kernel)
    born = np.where(copies.node == NOBODY, 0.0, begins[maker])
    gone = np.full(len(copies.device), -np.inf)
    np.maximum.at(gone, copies.use_copy, ends[copies.use_kernel])
    sent = number[copies.arrives]
    np.maximum.at(gone, copies.home[sent], ends[nodes + sent])
    gone[copies.stays] = np.inf
    kernels = np.flatnonzero(jobs.pieces[: len(device)])
    never = np.full(len(kernels), np.inf)
    return Spans(
        node=np.r_[copies.node, kernels, kernels],
        device=np.r_[copies.device, device[kernels], device[kernels]],
        begins=np.r_[born, begins[kernels], begins[kernels]],
        ends=np.r_[gone, ends[kernels], never],
        bytes=np.r_[copies.bytes, jobs.scratch[kernels], jobs.kept[kernels]],
    )


def use_of(spans: Spans, device: int, weights: float) -> MemoryUse:
    """Return the memory of one device over time; ``weights`` bytes lie there throughout."""
    mine = spans.device == device
    size = spans.bytes[mine]
    when, change = np.r_[spans.begins[mine], spans.ends[mine]], np.r_[size, -size]
    ever = np.isfinite(when)
    moments, which = np.unique(np.r_[0.0, when[ever]], return_inverse=True)
    steps = np.zeros(len(moments))
    np.add.at(steps, which, np.r_[weights, change[ever]])
    return MemoryUse(moments, np.cumsum(steps))
