"""MLP of a block, gated or plain."""

from __future__ import annotations

from typing import Any

from go_rl.graphs.readers.hf.family import Names
from go_rl.graphs.readers.hf.network import Made, NetworkBuilder
from go_rl.graphs.readers.hf.sizes import BlockSizes

ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "silu": ("silu", {}),
    "swish": ("silu", {}),
    "relu": ("relu", {}),
    "gelu": ("gelu", {}),
    "tanh": ("tanh", {}),
    **dict.fromkeys(
        ("gelu_fast", "gelu_new", "gelu_pytorch_tanh"), ("gelu", {"approximate": "tanh"})
    ),
    "quick_gelu": ("silu", {}),
}
"""Operator and settings of each activation, by its name in a configuration."""


def scope_of(root: str, module: str) -> str:
    """Return the path that a module of a block is in, with its dot."""
    inside = module.rpartition(".")[0]
    return f"{root}{inside}." if inside else root


def activate(net: NetworkBuilder, path: str, x: Made, activation: str, width: int) -> Made:
    """Add an activation whose result has ``width`` channels, the first ones of ``x``."""
    op, settings = ACTIVATIONS[activation]
    return net.add(path, op, {"self": x, **settings}, (*x.shape[:-1], width))


def gated_mlp(
    net: NetworkBuilder,
    names: Names,
    sizes: BlockSizes,
    root: str,
    x: Made,
    transposed: bool = False,
) -> Made:
    """Add ``down(activation(gate(x)) * up(x))``, or without a gate ``down(activation(up(x)))``."""
    bias, inner = "mlp" in sizes.biases, sizes.inner
    scope = scope_of(root, names.up)
    if names.gate_up:
        gate = up = net.linear(root + names.gate_up, x, 2 * inner, bias)
    else:
        gate = up = net.linear(root + names.up, x, inner, bias, transposed)
        if sizes.gated:
            gate = net.linear(root + names.gate, x, inner, bias)
    made = activate(net, f"{scope}activation", gate, sizes.activation, inner)
    if sizes.gated:
        made = net.add(f"{scope}product", "mul", {"self": made, "other": up}, made.shape)
    return net.linear(root + names.down, made, sizes.hidden, bias, transposed)
