"""Attention to latent keys and values, as operators: "multi-head latent attention".

Keys and values of all heads are products of one vector a token, which is all that a cache keeps,
beside the channels of keys that are rotated by position. A prefill computes keys and values of each
head. With a cache it would compute them of all earlier tokens; their matrices go to the queries and
to the result instead, and the heads attend to the latent vectors themselves. Source: DeepSeek-AI,
"DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024,
section 2.1.

Dimension letters as in `block`; ``l`` latent channels, ``p`` plain and ``r`` rotated channels of a
head, ``v`` channels of its values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.family import BlockSizes, LatentSizes
from go_rl.graphs.readers.hf.network import Counted, Held, NetworkBuilder, Shape
from go_rl.graphs.readers.operand import Operand


@dataclass(frozen=True)
class _Operands:
    """Operands of attention."""

    query: Operand
    """Queries without position, [b, s, h, p]."""
    rotated_query: Operand
    """Queries with rotary position, [b, s, h, r]."""
    latent: Operand
    """Latent of keys and values, [b, s, l]."""
    rotated_key: Operand
    """Keys with rotary position, [b, s, 1, r]."""


@dataclass(frozen=True)
class LatentAttention:
    """Self-attention of one block."""

    net: NetworkBuilder
    sizes: BlockSizes
    latent: LatentSizes
    cache: int
    """Earlier tokens of each sequence."""
    scope: str
    """Path of its modules, with a dot."""

    def add(self, x: Operand) -> Operand:
        """Add it to ``[b, s, width]``, without its last product: new tokens read the cache, and
        each other; return ``[b, s, h * v]``."""
        latent = self.latent
        rotated = self._latents(x)
        operands = _Operands(*self._queries(x), *rotated)
        width = self.sizes.heads * (latent.plain + latent.value)
        matrix = self.net.array(f"{self.scope}kv_b_proj.weight", (width, latent.rank))
        return (self._absorbed if self.cache else self._expanded)(operands, matrix)

    def _queries(self, x: Operand) -> tuple[Operand, Operand]:
        """Return queries ``[b, s, h, p]`` and, rotated, ``[b, s, h, r]``."""
        net, latent, scope, heads = self.net, self.latent, self.scope, self.sizes.heads
        if latent.query_rank:
            x = net.linear(f"{scope}q_a_proj", x, latent.query_rank, "q" in self.sizes.biases)
            x = net.norm(f"{scope}q_a_layernorm", x, "rms")
        module = "q_b_proj" if latent.query_rank else "q_proj"
        whole = net.linear(f"{scope}{module}", x, heads * (latent.plain + latent.rotated))
        rotated = replace(whole.viewed((*whole.shape[:2], heads, latent.rotated)), output=1)
        plain = whole.viewed((*whole.shape[:2], heads, latent.plain))
        return plain, net.rotate(f"{scope}q_rotary", rotated)

    def _latents(self, x: Operand) -> tuple[Operand, Operand]:
        """Return latent vectors ``[b, s, l]`` and the rotated channels of keys ``[b, s, 1, r]``."""
        net, latent, scope = self.net, self.latent, self.scope
        width = latent.rank + latent.rotated
        whole = net.linear(f"{scope}kv_a_proj_with_mqa", x, width, "q" in self.sizes.biases)
        rotated = replace(whole.viewed((*whole.shape[:2], 1, latent.rotated)), output=1)
        kept = whole.viewed((*whole.shape[:2], latent.rank))
        return (
            net.norm(f"{scope}kv_a_layernorm", kept, "rms"),
            net.rotate(f"{scope}k_rotary", rotated),
        )

    def _expanded(self, parts: _Operands, matrix: str) -> Operand:
        """Attend to keys and values of each head; return ``[b, s, h * v]``."""
        net, latent = self.net, self.latent
        batch, new, heads, plain = parts.query.shape
        shape = (batch, new, heads * (plain + latent.value))
        held = Held({"weight": matrix})
        whole = net.add(f"{self.scope}kv_b_proj", "linear", {"input": parts.latent}, shape, held)
        key = whole.viewed((batch, new, heads, plain))
        value = replace(whole.viewed((batch, new, heads, latent.value)), output=1)
        depth = plain + latent.rotated
        types = {
            "query": Tensor((batch, heads, new, depth), net.itemsize),
            "key": Tensor((batch, heads, new, depth), net.itemsize),
            "value": Tensor((batch, heads, new, latent.value), net.itemsize),
        }
        operands = {"query": parts.query, "key": key, "value": value,
                    "query_rotated": parts.rotated_query,
                    "key_rotated": parts.rotated_key}  # fmt: skip
        return self._attend(operands, types, (batch, new, heads * latent.value), 0.0)

    def _absorbed(self, parts: _Operands, matrix: str) -> Operand:
        """Attend to the latent vectors, kept and new; return ``[b, s, h * v]``."""
        net, latent = self.net, self.latent
        batch, new, heads, _ = parts.query.shape
        keys, rank, depth = self.cache + new, latent.rank, latent.rank + latent.rotated
        query = self._by_head("kv_b_proj_keys", parts.query, rank, matrix)
        types = {
            "query": Tensor((batch, heads, new, depth), net.itemsize),
            "key": Tensor((batch, 1, keys, depth), net.itemsize),
            "value": Tensor((batch, 1, keys, rank), net.itemsize),
        }
        operands = {"query": query, "key": parts.latent, "query_rotated": parts.rotated_query,
                    "key_rotated": parts.rotated_key}  # fmt: skip
        kept = float(batch * self.cache * depth) * net.itemsize
        made = self._attend(operands, types, (batch, new, heads * rank), kept)
        made = made.viewed((batch, new, heads, rank))
        made = self._by_head("kv_b_proj_values", made, latent.value, matrix)
        return made.viewed((batch, new, heads * latent.value))

    def _by_head(self, module: str, x: Operand, width: int, matrix: str) -> Operand:
        """Add the product of each head's channels with its part of ``matrix``."""
        net, (batch, new, heads, depth) = self.net, x.shape
        types = {
            "self": Tensor((heads, batch * new, depth), net.itemsize),
            "mat2": Tensor((heads, depth, width), net.stored[matrix].itemsize),
        }
        shape = (batch, new, heads, width)
        moved = x.tensor.nbytes + types["mat2"].nbytes + Tensor(shape, net.itemsize).nbytes
        return net.add(
            f"{self.scope}{module}", "bmm", {"self": x, "mat2": types["mat2"]}, shape,
            Held(others=(matrix,)), Counted(moved, types=types),
        )  # fmt: skip

    def _attend(
        self, operands: dict[str, Operand], types: dict[str, Tensor], shape: Shape, kept: float
    ) -> Operand:
        """Add attention; ``kept`` bytes of earlier tokens stay on the device."""
        arrived = sum(each.tensor.nbytes for each in operands.values())
        given: dict[str, Any] = {**operands, "is_causal": True}
        moved = arrived + kept + Tensor(shape, self.net.itemsize).nbytes
        return self.net.add(
            f"{self.scope}attention", "scaled_dot_product_attention", given, shape,
            Held(state_bytes=kept), Counted(moved, types=types),
        )  # fmt: skip
