"""Twins of the policy's layers: loops over nodes, NumPy only, parameters as flax holds them."""

import numpy as np


def dense(x: np.ndarray, weights: dict) -> np.ndarray:
    return x @ np.asarray(weights["kernel"]) + np.asarray(weights.get("bias", 0.0))


def layer_norm(x: np.ndarray, weights: dict) -> np.ndarray:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + 1e-6)
    return normal * np.asarray(weights["scale"]) + np.asarray(weights["bias"])


def graphsage(h: np.ndarray, edges: list[tuple[int, int]], weights: dict) -> np.ndarray:
    """One layer with max-pool over producers and, apart, over consumers."""
    sent = np.maximum(dense(h, weights["producers"]), 0)
    asked = np.maximum(dense(h, weights["consumers"]), 0)
    rows = []
    for v in range(len(h)):
        before, after = np.zeros(h.shape[1]), np.zeros(h.shape[1])
        for s, r in edges:
            if r == v:
                before = np.maximum(before, sent[s])
            if s == v:
                after = np.maximum(after, asked[r])
        joined = np.concatenate([h[v], before, after])
        rows.append(h[v] + np.maximum(dense(joined, weights["combine"]), 0))
    return layer_norm(np.array(rows), weights["LayerNorm_0"])


def segmented_attention(
    h: np.ndarray, real: np.ndarray, weights: dict, heads: int, segment: int, recurrence: bool
) -> np.ndarray:
    """Attention of every node to the nodes of its segment and of the one before."""
    depth, out = h.shape[1] // heads, np.zeros_like(h)
    query, key, value = (dense(h, weights[name]) for name in ("query", "key", "value"))
    for v in range(len(h)):
        start = v // segment * segment
        first = max(0, start - segment) if recurrence else start
        others = [u for u in range(first, start + segment) if real[u]]
        for head in range(heads if others else 0):
            part = slice(head * depth, (head + 1) * depth)
            logits = key[others, part] @ query[v, part] / np.sqrt(depth)
            weight = np.exp(logits - logits.max())
            out[v, part] = (weight / weight.sum()) @ value[others, part]
    return dense(out, weights["out"])
