"""Blocks of transformers: attention, MLP, sums and normalisations, as operators.

Dimension letters: ``b`` sequences, ``s`` new tokens of each, ``t`` tokens attended to, ``h`` heads,
``g`` heads of keys and values, ``d`` channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.family import BlockSizes, Tokens, TransformerFamily
from go_rl.graphs.readers.hf.latent import LatentAttention
from go_rl.graphs.readers.hf.mlp import Mixture, gated_mlp, scope_of
from go_rl.graphs.readers.hf.network import Counted, Held, NetworkBuilder
from go_rl.graphs.readers.operand import Operand


@dataclass(frozen=True)
class BlockPlan:
    """One stack's blocks: modules and order of the parts, sizes, and tokens."""

    net: NetworkBuilder
    family: TransformerFamily
    sizes: BlockSizes
    tokens: Tokens
    causal: bool
    context: Operand | None = None
    """[b, t, width] result of the encoder; None: there is none, or its keys and values are kept."""
    context_tokens: int = 0

    def normalise(self, path: str, x: Operand) -> Operand:
        """Return ``x`` normalised; ``x`` itself where the path ends at no module."""
        return x if path.endswith(".") else self.net.norm(path, x, self.family.norm)


def add_blocks(plan: BlockPlan, x: Operand, position_bias: Operand | None = None) -> Operand:
    """Add all blocks of a stack and the normalisation of its result."""
    for layer in range(plan.sizes.layers):
        x = add_block(plan, layer, x, position_bias)
    names = plan.family.names
    return plan.normalise(f"{names.root}.{names.final_norm}", x)


def add_block(plan: BlockPlan, layer: int, x: Operand, position_bias: Operand | None) -> Operand:
    """Add block ``layer`` of a stack and return its result ``[b, s, width]``."""
    names, net = plan.family.names, plan.net
    root = f"{names.root}.{names.layers}.{layer}."
    if plan.family.order == "post":
        return _post_block(plan, layer, x)
    has_norm = layer > 0 or plan.family.first_norm
    read = plan.normalise(root + names.attention_norm, x) if has_norm else x
    made = _attention(plan, layer, root, read, position_bias)
    if plan.family.order == "parallel":
        other = read if plan.family.single_norm else plan.normalise(root + names.mlp_norm, x)
        both = net.sum(root + "sum", made, _mlp(plan, layer, root, other))
        return net.sum(root + "residual", both, x)
    x = net.sum(root + "attention_residual", x, plan.normalise(
        root + names.post_attention_norm, made))  # fmt: skip
    if names.cross is not None:
        read = plan.normalise(root + names.cross_norm, x)
        x = net.sum(root + "cross_residual", x, _cross_attention(plan, root, read))
    made = _mlp(plan, layer, root, plan.normalise(root + names.mlp_norm, x))
    return net.sum(root + "mlp_residual", x, plan.normalise(root + names.post_mlp_norm, made))


def _post_block(plan: BlockPlan, layer: int, x: Operand) -> Operand:
    names, net = plan.family.names, plan.net
    root = f"{names.root}.{names.layers}.{layer}."
    x = net.sum(root + "attention_residual", x, _attention(plan, layer, root, x, None))
    x = plan.normalise(root + names.attention_norm, x)
    x = net.sum(root + "mlp_residual", x, _mlp(plan, layer, root, x))
    return plan.normalise(root + names.mlp_norm, x)


def _mlp(plan: BlockPlan, layer: int, root: str, x: Operand) -> Operand:
    experts = plan.sizes.experts
    if experts is not None and layer in experts.layers:
        return Mixture(plan.net, plan.family.names, plan.sizes, experts, root).add(x)
    return gated_mlp(plan.net, plan.family.names, plan.sizes, root, x, plan.family.transposed)


def _attention(
    plan: BlockPlan, layer: int, root: str, x: Operand, position_bias: Operand | None
) -> Operand:
    """Add self-attention: new tokens read the cache, and each other."""
    names, sizes, net, tokens = plan.family.names, plan.sizes, plan.net, plan.tokens
    bias = "out" in sizes.biases
    if sizes.latent is not None:
        attention = LatentAttention(net, sizes, sizes.latent, tokens.cache, f"{root}self_attn.")
        return net.linear(root + names.out, attention.add(x), sizes.hidden, bias)
    scope = scope_of(root, names.qkv or names.q)
    q, k, v = _projections(plan, root, x)
    if names.q_norm:
        q, k = _normalised(plan, root + names.q_norm, q), _normalised(plan, root + names.k_norm, k)
    if sizes.rotary and layer not in sizes.unrotated:
        share = sizes.rotary / sizes.head_dim
        q, k = (net.rotate(f"{scope}{name}_rotary", each, share)
                for name, each in (("q", q), ("k", k)))  # fmt: skip
    keys = min(tokens.cache + tokens.new, sizes.windows.get(layer, tokens.cache + tokens.new))
    kept = min(tokens.cache, keys)
    sinks = (net.array(root + names.sinks, (sizes.heads,)),) if names.sinks else ()
    made = _scores(plan, f"{scope}attention", (q, k, v), keys, kept, position_bias, sinks)
    return net.linear(root + names.out, made, sizes.hidden, bias, plan.family.transposed)


def _projections(plan: BlockPlan, root: str, x: Operand) -> tuple[Operand, Operand, Operand]:
    """Return queries ``[b, s, h, d]``, keys and values ``[b, s, g, d]``."""
    names, sizes, net = plan.family.names, plan.sizes, plan.net
    counts = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
    if names.qkv:
        width = sum(counts) * sizes.head_dim
        whole = net.linear(root + names.qkv, x, width, "q" in sizes.biases, plan.family.transposed)
        parts = [replace(whole, output=i) for i in range(3)]
    else:
        modules = (("q", names.q), ("k", names.k), ("v", names.v))
        parts = [
            net.linear(root + module, x, count * sizes.head_dim, part in sizes.biases)
            for (part, module), count in zip(modules, counts, strict=True)
        ]
    q, k, v = (_heads(each, count, sizes.head_dim)
               for each, count in zip(parts, counts, strict=True))  # fmt: skip
    return q, k, v


def _normalised(plan: BlockPlan, path: str, x: Operand) -> Operand:
    """Normalise each head of ``[b, s, h, d]``, or all of a token together."""
    if not plan.family.joint_qk_norm:
        return plan.normalise(path, x)
    _, _, heads, channels = x.shape
    return _heads(plan.normalise(path, _heads(x, 1, heads * channels)), heads, channels)


def _heads(x: Operand, count: int, channels: int) -> Operand:
    shape = (*x.shape[:2], count, channels)
    return x.viewed(shape)


def _scores(
    plan: BlockPlan, path: str, made: tuple[Operand, Operand | None, Operand | None],
    keys: int, kept: int, position_bias: Operand | None = None, sinks: tuple[str, ...] = (),
) -> Operand:  # fmt: skip
    """Add attention to ``keys`` tokens, the keys and values of ``kept`` of which stay on the device
    from earlier, and to the stored array ``sinks``."""
    q, k, v = made
    batch, new, heads, channels = q.shape
    itemsize, groups = plan.net.itemsize, plan.sizes.kv_heads
    seen = Tensor((batch, groups, keys, channels), itemsize)
    types = {"query": Tensor((batch, heads, new, channels), itemsize), "key": seen, "value": seen}
    state = 2.0 * batch * groups * kept * channels * itemsize
    operands = {"query": q, "key": k, "value": v, "attn_mask": position_bias,
                "is_causal": plan.causal and position_bias is None}  # fmt: skip
    arrived = sum(each.tensor.nbytes for each in (q, k, v, position_bias) if each is not None)
    return plan.net.add(
        path, "scaled_dot_product_attention", operands, (batch, new, heads * channels),
        Held(others=sinks, state_bytes=state),
        Counted(arrived + state + q.tensor.nbytes, types=types),
    )  # fmt: skip


def _cross_attention(plan: BlockPlan, root: str, x: Operand) -> Operand:
    """Add attention to the encoder's result, whose keys and values are made once a sequence."""
    assert plan.family.names.cross is not None
    names, net, sizes = plan.family.names.cross, plan.net, plan.sizes
    query, key, value, out = (root + name for name in names)
    width = sizes.heads * sizes.head_dim
    q = _heads(net.linear(query, x, width, "q" in sizes.biases), sizes.heads, sizes.head_dim)
    k = v = None
    if plan.context is not None:
        k, v = (
            _heads(net.linear(path, plan.context, width, part in sizes.biases),
                   sizes.heads, sizes.head_dim)
            for part, path in (("k", key), ("v", value))
        )  # fmt: skip
    length = plan.context_tokens
    across = replace(plan, causal=False)
    made = _scores(
        across, scope_of(root, names[0]) + "attention", (q, k, v), length, 0 if k else length
    )
    return net.linear(out, made, sizes.hidden, "out" in sizes.biases)
