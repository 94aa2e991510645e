"""Milliseconds of calls on the GPU at hand: alone between events, and within one CUDA graph.

Where there is no GPU, the processor's clock times the same calls, so that the scripts can be tried.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

Call = Callable[[], Any]
TYPES = ("float32", "tf32", "float16", "bfloat16")
REPEATS, WARM = 15, 3
IN_GRAPH = 20
"""Calls of one graph, at most."""
GRAPH_MS = 8.0
"""Milliseconds of a graph, if two calls are not longer."""
LONG_MS = 20.0
"""Milliseconds from which on a call is not repeated in a graph: the launch hardly counts."""
HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"


def set_type(name: str) -> torch.dtype:
    """Switch TF32 on or off and return the element type."""
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    return torch.float32 if name in ("float32", "tf32") else getattr(torch, name)


def spread(call: Call, repeats: int = REPEATS, warm: int = WARM) -> dict[str, float]:
    """Return median and quartiles of milliseconds of single calls, by CUDA events."""
    for _ in range(warm):
        call()
    found = sorted(_on_gpu(call, repeats) if HAS_GPU else _on_processor(call, repeats))
    low, high = found[len(found) // 4], found[-1 - len(found) // 4]
    return {"ms": statistics.median(found), "low": low, "high": high}


def _on_gpu(call: Call, repeats: int) -> list[float]:
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
             for _ in range(repeats)]  # fmt: skip
    torch.cuda.synchronize()
    for begin, end in pairs:
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in pairs]


def _on_processor(call: Call, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - began))
    return found


def alone_and_in_graph(call: Call) -> tuple[float, float]:
    """Return milliseconds between two events around one call, the host's launch included, and of
    one call among twenty of one CUDA graph, which no launch holds up."""
    alone = spread(call, 7)["ms"]
    calls = min(IN_GRAPH, max(2, round(GRAPH_MS / alone)))

    def many() -> None:
        for _ in range(calls):
            call()

    return alone, spread(graphed(many, 1), 3)["ms"] / calls if alone < LONG_MS else alone


def synchronize() -> None:
    """Wait for the GPU."""
    if HAS_GPU:
        torch.cuda.synchronize()


def graphed(call: Call, warm: int = WARM) -> Call:
    """Return the replay of a call as one CUDA graph: no host between launches."""
    if not HAS_GPU:
        return call
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def as_graph(call: Call, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Call:
    """Return a model's call as one CUDA graph; one that makes tensors on the host is exported
    first, which makes them constants."""
    try:
        return graphed(call)
    except RuntimeError:
        synchronize()
        with torch.no_grad():
            exported = torch.export.export(model, inputs).module()

        def again() -> object:
            with torch.no_grad():
                return exported(*inputs)

        return graphed(again)
