"""Names and times of the kernels that operators launch, by PyTorch's profiler.

A marker kernel stands before and after each operator, so that what lies between two is its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import torch
from operator_cases import Case
from tables import Tables
from timing import HAS_GPU, set_type, synchronize
from torch.profiler import ProfilerActivity, profile

Typed = tuple[Case, str]
MARKER = "spin_kernel"
AT_ONCE = 48
"""Operators of one profile."""
SKIPPED = ("add", "addu", "div", "divu", "mul", "mulu", "pow", "powu", "relu", "tanh", "gelu")
"""Operators whose kernels say nothing."""


def kernels(out: Path, lists: Sequence[tuple[Iterator[Case], Sequence[str]]], until: float) -> None:
    """Write ``kernels.csv.gz``: operators of all lists in turn until the time is over."""
    table = Tables(out)
    each = [_typed(drawn, types) for drawn, types in lists]
    turns = (item for item in chain.from_iterable(zip_longest(*each)) if item is not None)
    while time.time() < until and (some := list(islice(turns, AT_ONCE))):
        for (case, kind), found in zip(some, _profiled(some), strict=True):
            names = "|".join(name for name, _ in found)
            micro = "|".join(f"{us:.3f}" for _, us in found)
            row = {"op": case.kind, "type": kind, "kernel": names, "us": micro}
            sizes = " ".join(f"{name}={value}" for name, value in case.sizes.items())
            table.add("kernels", row | {"sizes": sizes})
        table.write()
    print(len(table), "operators profiled", flush=True)


def _typed(drawn: Iterator[Case], types: Sequence[str]) -> Iterator[Typed]:
    for case in drawn:
        if case.kind not in SKIPPED:
            for each in types:
                yield case, each


def _profiled(some: Sequence[Typed]) -> list[list[tuple[str, float]]]:
    """Kernels and microseconds of each operator."""
    activity = ProfilerActivity.CUDA if HAS_GPU else ProfilerActivity.CPU
    with profile(activities=[activity]) as profiled, torch.no_grad():
        for case, kind in some:
            call = case.build(set_type(kind))
            call()
            _mark()
            call()
            _mark()
        synchronize()
    if not HAS_GPU:
        return [[("not on a GPU", 0.0)] for _ in some]
    return _between_markers(_kernel_events(profiled))


def _mark() -> None:
    if HAS_GPU:
        torch.cuda._sleep(100)


def _kernel_events(profiled: Any) -> list[tuple[str, float]]:
    """Names and microseconds of all kernels in order."""
    events = [
        (event.time_range.start, event.name, event.time_range.elapsed_us())
        for event in profiled.events()
        if "cuda" in str(event.device_type).lower()
    ]
    return [(name, us) for _, name, us in sorted(events)]


def _between_markers(events: Sequence[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    """Kernels of every second stretch between markers."""
    stretches: list[list[tuple[str, float]]] = [[]]
    for name, us in events:
        if MARKER in name:
            stretches.append([])
        else:
            stretches[-1].append((name, us))
    return stretches[1::2]
