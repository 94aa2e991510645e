"""`plan_figures`: the correct evaluation of a legal plan, device by device and link by link.

Shares no code with solvers, environments or simulators. Dimension letters:
``D`` devices, ``L`` links (see `go_rl.core.Evaluation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product

from jaxtyping import Int
from numpy import ndarray

from go_rl.core.evaluation import Evaluation
from go_rl.core.problem import Problem
from go_rl.verify.layout import Layout, read_layout
from go_rl.verify.makespan_value import Replayed
from go_rl.verify.pair_link import pair_link
from go_rl.verify.value import Replicas, device_loads, link_bytes, link_seconds, ring_compute

TOLERANCE = 1e-6
"""Relative difference allowed between a figure of the plan and the checker's own."""
ROUNDING = 1e-9
"""Error allowed in small figures, as a share of the largest, because of rounding in sums."""


@dataclass(frozen=True)
class Figures:
    """The checker's own figures, under the names of `Evaluation`."""

    device_seconds: Sequence[float]
    """[D] seconds an iteration."""
    link_seconds: Sequence[float]
    """[L] seconds an iteration."""
    link_bytes: Sequence[float]
    """[L] bytes an iteration."""
    weight_bytes: Sequence[float]
    """[D] resident bytes."""
    streamed_bytes: Sequence[float]
    """[D] bytes an iteration."""
    peak_bytes: Sequence[float] | None = None
    """[D] peak bytes; None: not recomputed (all objectives but makespan)."""


def plan_figures(
    problem: Problem, device: Int[ndarray, "N"], replicas: Replicas, replayed: Replayed | None
) -> Figures:
    """Return the figures of a plan that `legal` accepts.

    Args:
        device: [N] home of each node.
        replicas: further devices that hold a copy, by node index.
        replayed: its replay, for makespan.
    """
    layout = read_layout(problem, device, replicas)
    held = _held(layout)
    if replayed is not None:
        pairs = product(range(problem.hardware.num_devices), repeat=2)
        busy = [
            size / pair_link(problem.hardware.links, *pair).bandwidth if size else 0.0
            for pair, size in zip(pairs, replayed.link_bytes, strict=True)
        ]
        return Figures(
            replayed.device_seconds, busy, replayed.link_bytes, *held, replayed.peak_bytes
        )
    home = layout.home.tolist()
    if not problem.objective.traits.is_pipeline:
        return Figures(device_loads(problem, home), [], [], *held)
    on = [{chip, *replicas.get(n, ())} for n, chip in enumerate(home)]
    traffic = link_bytes(problem, home, on)
    return Figures(ring_compute(problem, on), link_seconds(problem, traffic), traffic, *held)


def false_figures(evaluation: Evaluation, mine: Figures, problem: Problem) -> Iterator[str]:
    """Yield a sentence for each field of an evaluation that differs from the checker's."""
    for field in fields(Figures):
        name, right = field.name, getattr(mine, field.name)
        if right is not None:
            yield from _differences(name, getattr(evaluation, name).tolist(), right)
    if mine.peak_bytes is None:
        yield from _impossible_peaks(evaluation.peak_bytes.tolist(), mine.weight_bytes, problem)


def _held(layout: Layout) -> tuple[list[float], list[float]]:
    """[D] bytes of resident weights and [D] of streamed ones, copies included."""
    problem, devices = layout.problem, range(layout.problem.hardware.num_devices)
    streamed = [0.0 for _ in devices]
    for node, chip in zip(layout.node.tolist(), layout.chip.tolist(), strict=True):
        streamed[chip] += float(problem.streamed_bytes[node])
    return [layout.resident_weights(d) for d in devices], streamed


def _differences(name: str, theirs: list[float], mine: Sequence[float]) -> Iterator[str]:
    """The first wrong entry; a sentence for each of 64 would only hide it."""
    if len(theirs) != len(mine):
        yield f"{name} has {len(theirs)} entries; it must have {len(mine)}"
        return
    slack = ROUNDING * max(mine, default=0.0)
    for i, (said, right) in enumerate(zip(theirs, mine, strict=True)):
        if not abs(said - right) <= TOLERANCE * abs(right) + slack:
            yield f"{name}[{i}] is {said:.9g}; it must be {right:.9g}"
            return


def peaks_over_memory(evaluation: Evaluation, problem: Problem) -> Iterator[str]:
    """Yield a sentence for each peak, as an evaluation states it, that is above the memory; for
    objectives whose live tensors are not recomputed."""
    ring = problem.objective.traits.is_pipeline
    chips = problem.hardware.devices if problem.memory else ()
    for i, (peak, chip) in enumerate(zip(evaluation.peak_bytes.tolist(), chips, strict=False)):
        if (ring or not chip.is_cpu) and peak > chip.memory_bytes * (1 + TOLERANCE):
            word = problem.objective.traits.device
            yield (
                f"{word} {i} needs {peak:.6g} bytes at once, as the plan's peak_bytes states; its "
                f"memory is {chip.memory_bytes:.6g}"
            )


def _impossible_peaks(
    peaks: list[float], weights: Sequence[float], problem: Problem
) -> Iterator[str]:
    """Live tensors are not recomputed, but the peak includes the weights."""
    if len(peaks) != problem.hardware.num_devices:
        yield f"peak_bytes has {len(peaks)} entries; it must have {problem.hardware.num_devices}"
        return
    for i, (peak, least) in enumerate(zip(peaks, weights, strict=True)):
        if not least * (1 - TOLERANCE) <= peak < float("inf"):
            yield f"peak_bytes[{i}] is {peak:.9g}; it must be at least the weights of {least:.9g}"
            return
