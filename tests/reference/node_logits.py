"""Plain twins of the logits of node decisions: one unit and one choice at a time."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Layers = Mapping[str, Mapping[str, Any]]


def device_log_probs(
    layers: Layers,
    h: np.ndarray,
    pooled: np.ndarray,
    edges: Sequence[tuple[int, int]],
    share: np.ndarray,
    options: np.ndarray,
    before: Sequence[int] | None,
    t: int,
    latent: Sequence[float],
    stay: float,
) -> np.ndarray:
    """[U, K] log-probabilities of one sample's devices in iteration ``t``; ``latent`` are the
    graph-level numbers along directions."""
    devices = int(np.isfinite(options).any(axis=0).sum())
    found = np.full(options.shape, -np.inf)
    for u in range(len(h)):
        for d in range(devices):
            if not np.isfinite(options[u, d]):
                continue
            seen = [0.0, 0.0, 0.0, 0.0]
            if before is not None:
                load = sum(share[v] for v in range(len(h)) if before[v] == d) * devices - 1.0
                made = [before[a] == d for a, b in edges if b == u]
                read = [before[b] == d for a, b in edges if a == u]
                seen = [float(before[u] == d), min(max(load, -4.0), 4.0), _mean(made), _mean(read)]
            seen.append(min(float(options[u, d]), 4.0))
            unit = np.maximum(
                _dense(layers["project"], h[u]) + _dense(layers["context"], pooled), 0.0
            )
            place = (d + 0.5) / devices
            waves = [math.cos(math.pi * k * place) for k in (1, 2, 3, 4)]
            digits = [1.0 if d & (1 << i) else -1.0 for i in range(6)]
            described = np.array(waves + digits)
            key = _dense(layers["key"], described)
            weights = _dense(layers["weigh"], unit).reshape(-1, 5)[t] + [2.0, -0.5, 2.0, 2.0, -1.0]
            bend = _dense(layers["bend"], h[u]).reshape(len(latent), 8)
            turned = _dense(layers["bend_key"], described)
            bent = sum(z * float(row @ turned) for z, row in zip(latent, bend, strict=True))
            found[u, d] = (
                float(unit @ key) / math.sqrt(len(key))
                + float(weights @ np.array(seen))
                + 2.0 * bent / math.sqrt(8 * len(latent))
                + (stay if before is not None and before[u] == d else 0.0)
            )
    return _normalised(found)


def level_log_probs(
    layers: Layers,
    h: np.ndarray,
    pooled: np.ndarray,
    edges: Sequence[tuple[int, int]],
    options: np.ndarray,
    before: Sequence[int] | None,
) -> np.ndarray:
    """[U, K] log-probabilities of one sample's levels."""
    found = np.full(options.shape, -np.inf)
    for u in range(len(h)):
        seen = [0.0, 0.0, 0.0]
        if before is not None:
            own = before[u] / 19
            made = [before[a] / 19 - own for a, b in edges if b == u]
            read = [before[b] / 19 - own for a, b in edges if a == u]
            seen = [own - 0.5, max(made, default=0.0), max(read, default=0.0)]
        logits = _dense(layers["emit"], _hidden(layers, h[u], pooled, seen))
        found[u] = np.where(np.isfinite(options[u]), logits, -np.inf)
    return _normalised(found)


def _hidden(layers: Layers, h: np.ndarray, pooled: np.ndarray, seen: list[float]) -> np.ndarray:
    unit = _dense(layers["project"], h) + _dense(layers["context"], pooled)
    return np.maximum(unit + _dense(layers["condition"], np.array(seen)), 0.0)


def _dense(layer: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    return x @ np.asarray(layer["kernel"], np.float64) + np.asarray(layer["bias"], np.float64)


def _mean(flags: list[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def _normalised(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
