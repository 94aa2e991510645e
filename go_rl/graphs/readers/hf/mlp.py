"""MLP of a block, gated or plain, and mixtures of experts: each token meets some; all experts are
one operator a product."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.family import BlockSizes, Names
from go_rl.graphs.readers.hf.network import Counted, Held, NetworkBuilder
from go_rl.graphs.readers.operand import Operand

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


def activate(net: NetworkBuilder, path: str, x: Operand, activation: str, width: int) -> Operand:
    """Add an activation whose result has ``width`` channels, the first ones of ``x``."""
    op, settings = ACTIVATIONS[activation]
    return net.add(path, op, {"self": x, **settings}, (*x.shape[:-1], width))


def gated_mlp(
    net: NetworkBuilder,
    names: Names,
    sizes: BlockSizes,
    root: str,
    x: Operand,
    transposed: bool = False,
) -> Operand:
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


def mixture(net: NetworkBuilder, names: Names, sizes: BlockSizes, root: str, x: Operand) -> Operand:
    """Add router, experts, and the expert of every token; the result is of the shape of ``x``."""
    experts = sizes.experts
    assert experts is not None
    scope = f"{root}{names.expert.rpartition('.experts')[0]}."
    weights, rows = _routed(net, names, sizes, root, scope, x)
    gate, up, down = names.expert_parts
    if names.stacked:
        first = _product(net, names, sizes, root, scope, "gate_up_proj", rows, 2 * experts.inner)
        second = first
    else:
        first, second = (_product(net, names, sizes, root, scope, part, rows, experts.inner)
                         for part in (gate, up))  # fmt: skip
    made = activate(net, f"{scope}experts.activation", first, sizes.activation, experts.inner)
    made = net.add(f"{scope}experts.product", "mul", {"self": made, "other": second}, made.shape)
    made = _product(net, names, sizes, root, scope, down, made, sizes.hidden)
    made = net.add(f"{scope}weighted", "mul", {"self": made, "other": weights}, made.shape)
    made = net.add(f"{scope}combined", "index_add", {"self": x, "source": made}, x.shape)
    if not experts.shared:
        return made
    return net.sum(f"{scope}sum", made, _shared(net, names, sizes, root, x))


def _routed(
    net: NetworkBuilder, names: Names, sizes: BlockSizes, root: str, scope: str, x: Operand
) -> tuple[Operand, Operand]:
    """Return weights ``[rows, 1]`` and tokens ``[rows, width]``; a token has ``chosen`` rows."""
    experts = sizes.experts
    assert experts is not None
    tokens = prod(x.shape[:-1])
    scores = net.linear(root + names.router, x, experts.count, "router" in sizes.biases)
    shares = net.add(f"{scope}softmax", "softmax", {"self": scores, "dim": -1}, scores.shape)
    rows = tokens * experts.chosen
    bias = root + names.router_bias
    held = Held(others=(net.array(bias, (experts.count,)),) if names.router_bias else ())
    picked = {"self": shares, "k": experts.chosen}
    weights = net.add(f"{scope}topk", "topk", picked, (rows, 1), held)
    chosen = replace(weights, output=1)
    return weights, net.add(
        f"{scope}tokens", "index_select", {"self": x, "index": chosen}, (rows, x.shape[-1])
    )


def _product(
    net: NetworkBuilder, names: Names, sizes: BlockSizes, root: str, scope: str, part: str,
    x: Operand, width: int,
) -> Operand:  # fmt: skip
    """Add the products of each expert's rows with its matrix, and biases; experts without rows are
    not read."""
    experts = sizes.experts
    assert experts is not None
    if names.stacked:
        shape = (experts.count, x.shape[-1], width)
        held = (net.array(f"{root}{names.expert}.{part}", shape),)
    else:
        held = tuple(
            net.array(f"{root}{names.expert.format(i)}.{part}.weight", (width, x.shape[-1]))
            for i in range(experts.count)
        )
    matrices = Tensor((experts.count, x.shape[-1], width), net.stored[held[0]].itemsize)
    read = min(1.0, x.shape[0] / experts.count)
    moved = x.tensor.nbytes + x.shape[0] * width * net.itemsize + read * matrices.nbytes
    flops = None
    if "expert" in sizes.biases:
        bias = net.array(f"{root}{names.expert}.{part}_bias", (experts.count, width))
        held += (bias,)
        moved += read * net.stored[bias].nbytes
        flops = (2.0 * x.shape[-1] + 1) * x.shape[0] * width
    return net.add(
        f"{scope}experts.{part}", "_grouped_mm", {"self": x, "mat2": matrices},
        (x.shape[0], width), Held(others=held), Counted(moved, flops),
    )  # fmt: skip


def _shared(net: NetworkBuilder, names: Names, sizes: BlockSizes, root: str, x: Operand) -> Operand:
    """Add the expert of every token, and its gate."""
    assert sizes.experts is not None
    parts = (f"{names.shared}.{part}" for part in names.expert_parts)
    gate, up, down = parts
    inside = replace(names, gate=gate, up=up, down=down, gate_up="")
    made = gated_mlp(net, inside, replace(sizes, inner=sizes.experts.shared), root, x)
    if not names.shared_gate:
        return made
    open_ = net.linear(root + names.shared_gate, x, 1)
    open_ = net.add(f"{root}mlp.shared_open", "sigmoid", {"self": open_}, open_.shape)
    return net.add(f"{root}mlp.shared_product", "mul", {"self": made, "other": open_}, made.shape)
