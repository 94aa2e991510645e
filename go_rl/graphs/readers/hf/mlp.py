"""MLP of a block, gated or plain, and mixtures of experts: each token meets some; all experts are
one operator a product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.family import BlockSizes, ExpertSizes, Names
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
        made = net.multiplied(f"{scope}product", made, up)
    return net.linear(root + names.down, made, sizes.hidden, bias, transposed)


@dataclass(frozen=True)
class Mixture:
    """Experts of one block."""

    net: NetworkBuilder
    names: Names
    sizes: BlockSizes
    experts: ExpertSizes
    root: str

    @property
    def scope(self) -> str:
        """Path that the experts are in, with its dot."""
        return f"{self.root}{self.names.expert.rpartition('.experts')[0]}."

    def add(self, x: Operand) -> Operand:
        """Add router, experts, and the expert of every token; the result is of ``x``'s shape."""
        net, scope, inner = self.net, self.scope, self.experts.inner
        weights, rows = self._routed(x)
        gate, up, down = self.names.expert_parts
        if self.names.stacked:
            first = second = self._product("gate_up_proj", rows, 2 * inner)
        else:
            first, second = (self._product(part, rows, inner) for part in (gate, up))
        made = activate(net, f"{scope}experts.activation", first, self.sizes.activation, inner)
        made = net.multiplied(f"{scope}experts.product", made, second)
        made = self._product(down, made, self.sizes.hidden)
        made = net.multiplied(f"{scope}weighted", made, weights)
        made = net.add(f"{scope}combined", "index_add", {"self": x, "source": made}, x.shape)
        if not self.experts.shared:
            return made
        return net.sum(f"{scope}sum", made, self._shared(x))

    def _routed(self, x: Operand) -> tuple[Operand, Operand]:
        """Return weights ``[rows, 1]`` and tokens ``[rows, width]``: ``chosen`` rows a token."""
        net, names, count, scope = self.net, self.names, self.experts.count, self.scope
        scores = net.linear(self.root + names.router, x, count, "router" in self.sizes.biases)
        shares = net.add(f"{scope}softmax", "softmax", {"self": scores, "dim": -1}, scores.shape)
        rows = prod(x.shape[:-1]) * self.experts.chosen
        bias = self.root + names.router_bias
        held = Held(others=(net.array(bias, (count,)),) if names.router_bias else ())
        picked = {"self": shares, "k": self.experts.chosen}
        weights = net.add(f"{scope}topk", "topk", picked, (rows, 1), held)
        operands = {"self": x, "index": replace(weights, output=1)}
        shape = (rows, x.shape[-1])
        return weights, net.add(f"{scope}tokens", "index_select", operands, shape)

    def _product(self, part: str, x: Operand, width: int) -> Operand:
        """Add the products of each expert's rows with its matrix, and biases; experts without rows
        are not read."""
        net, names, count = self.net, self.names, self.experts.count
        path = f"{self.root}{names.expert}"
        if names.stacked:
            held = (net.array(f"{path}.{part}", (count, x.shape[-1], width)),)
        else:
            held = tuple(
                net.array(f"{path.format(i)}.{part}.weight", (width, x.shape[-1]))
                for i in range(count)
            )
        matrices = Tensor((count, x.shape[-1], width), net.stored[held[0]].itemsize)
        read = min(1.0, x.shape[0] / count)
        moved = x.tensor.nbytes + x.shape[0] * width * net.itemsize + read * matrices.nbytes
        flops = None
        if "expert" in self.sizes.biases:
            bias = net.array(f"{path}.{part}_bias", (count, width))
            held += (bias,)
            moved += read * net.stored[bias].nbytes
            flops = (2.0 * x.shape[-1] + 1) * x.shape[0] * width
        return net.add(
            f"{self.scope}experts.{part}", "_grouped_mm", {"self": x, "mat2": matrices},
            (x.shape[0], width), Held(others=held), Counted(moved, flops),
        )  # fmt: skip

    def _shared(self, x: Operand) -> Operand:
        """Add the expert of every token, and its gate."""
        net, names, root = self.net, self.names, self.root
        gate, up, down = (f"{names.shared}.{part}" for part in names.expert_parts)
        inside = replace(names, gate=gate, up=up, down=down, gate_up="")
        made = gated_mlp(net, inside, replace(self.sizes, inner=self.experts.shared), root, x)
        if not names.shared_gate:
            return made
        open_ = net.linear(root + names.shared_gate, x, 1)
        open_ = net.add(f"{root}mlp.shared_open", "sigmoid", {"self": open_}, open_.shape)
        return net.multiplied(f"{root}mlp.shared_product", made, open_)
