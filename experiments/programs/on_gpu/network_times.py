"""Milliseconds of the networks of `networks`: eager and as one CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from networks import FUSED, NETWORKS, Built
from timing import DEVICE, TYPES, as_graph, set_type, spread

Row = dict[str, Any]
LONGEST_ERROR = 300


def networks(names: Sequence[str], write: Callable[[list[Row]], None], until: float) -> None:
    """Time networks until the time is over; ``write`` is given all rows after each network."""
    rows: list[Row] = []
    for name in names or NETWORKS:
        if time.time() > until:
            print("no time is left for", name, flush=True)
            continue
        try:
            model, inputs = on_device((NETWORKS | FUSED)[name])
        except Exception as error:
            rows.append({"network": name, "error": _said(error)})
            print(rows[-1], flush=True)
            continue
        for kind in TYPES:
            rows.append({"network": name, "type": kind, **_inference(model, inputs, kind)})
            print(rows[-1], flush=True)
        del model, inputs
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        write(rows)


def on_device(build: Callable[[], Built]) -> Built:
    """Return a network made on the device, which is quicker; on the processor where it cannot."""
    try:
        with torch.device(DEVICE):
            model, inputs = build()
    except (RuntimeError, NotImplementedError, TypeError) as error:
        print("made on the processor:", _said(error), flush=True)
        model, inputs = build()
    return model.to(DEVICE).eval(), tuple(x.to(DEVICE) for x in inputs)


def _inference(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], kind: str) -> Row:
    dtype = set_type(kind)
    row: Row = {}
    try:
        typed = model.to(dtype)
        given = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)

        def call() -> object:
            with torch.no_grad():
                return typed(*given)

        row["eager"] = spread(call)
        row["graph"] = spread(as_graph(call, typed, given))
    except Exception as error:
        row["error"] = _said(error)
    return row


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
