"""`TransformerFamily`: what sets one family of transformers apart from another, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Norm = Literal["rms", "layer", "layer-no-bias"]
Order = Literal["pre", "post", "sandwich", "parallel"]
"""Where a block normalises: before each part, after each sum, on both sides of each part, or before
two parts that read the same input."""
Positions = Literal["rotary", "learned", "relative", "none"]
Kind = Literal["decoder", "encoder", "encoder-decoder", "image", "speech"]


@dataclass(frozen=True)
class Names:
    """Modules of one stack of blocks as its safetensors call them; empty: there is none."""

    root: str = "model"
    embed: str = "embed_tokens"
    positions: str = ""
    token_types: str = ""
    embed_norm: str = ""
    layers: str = "layers"
    final_norm: str = "norm"

    attention_norm: str = "input_layernorm"
    """Modules of a block from here on."""
    qkv: str = ""
    """One product for queries, keys and values."""
    q: str = "self_attn.q_proj"
    k: str = "self_attn.k_proj"
    v: str = "self_attn.v_proj"
    out: str = "self_attn.o_proj"
    q_norm: str = ""
    k_norm: str = ""
    post_attention_norm: str = ""
    sinks: str = ""
    """Array of a score for each head that no value belongs to ("attention sinks")."""
    bias_table: str = ""
    """Biases of relative positions, in the first block."""

    cross_norm: str = ""
    cross: tuple[str, str, str, str] | None = None
    """Attention to an encoder: queries, keys, values, result."""

    mlp_norm: str = "post_attention_layernorm"
    post_mlp_norm: str = ""
    gate_up: str = ""
    """One product for gate and values."""
    gate: str = "mlp.gate_proj"
    up: str = "mlp.up_proj"
    down: str = "mlp.down_proj"
    router: str = ""
    router_bias: str = ""
    """Array that is added to the scores of experts."""
    expert: str = ""
    """Each expert, its number as ``{}``; or all of them."""
    stacked: bool = False
    """Whether an array has the matrices of all experts, one for gate and values."""
    expert_parts: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    shared: str = ""
    """Expert of every token."""
    shared_gate: str = ""


@dataclass(frozen=True)
class EncoderHeads:
    """Modules of the classes of an encoder, or of a tower; empty: there is none."""

    dense: str = ""
    """Product of a masked model before its vocabulary."""
    norm: str = ""
    """Normalisation of that product, once activated."""
    vocabulary: str = ""
    vocabulary_bias: str = ""
    pooler: str = ""
    """Product of the first token, of a model without a head."""
    classes: str = ""
    """Product of the first token before the classes of a sequence; empty: ``dense`` and ``norm``,
    before those of tokens, too."""
    classes_activation: str = "tanh"
    sequence_classes: str = "classifier"


@dataclass(frozen=True)
class TransformerFamily:
    """One family of transformers."""

    names: Names = Names()
    encoder: Names | None = None
    """Modules of the encoder, of two stacks."""
    kind: Kind = "decoder"
    fields: Mapping[str, str] = field(default_factory=dict)
    """Its names of fields of a configuration, by the common one (Llama's)."""
    norm: Norm = "rms"
    order: Order = "pre"
    gated: bool = True
    biases: Mapping[str, bool | str] = field(default_factory=dict)
    """Biases of ``q``, ``k``, ``v``, ``out``, ``mlp``, ``head``, ``transform`` (product before the
    vocabulary), ``router`` and ``expert``: always, or the field that says so; none of those that
    are left out."""
    biased: bool = False
    """Whether such a field is true where the configuration does not say."""
    positions: Positions = "rotary"
    position_offset: int = 0
    """Rows of the table of positions beyond those of the configuration, which no position uses."""
    reserved: int = 0
    """Rows of the table of positions, counted in the configuration, that no position uses."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """Values that fields must have where they are there: others make networks that are not read. A
    text that begins with ``=`` is the field whose value it must be."""
    activation: str = "silu"
    """Activation where the configuration has none."""
    tied: bool = False
    """Whether the head reads the embedding's table, where the configuration does not say."""
    patch_bias: bool = True
    """Whether the embedding of an image's patches adds a bias."""
    class_token: str = ""
    """Array that is put before an image's patches."""
    transposed: bool = False
    """Whether matrices are stored as ``[inputs, results]``."""
    head: str = "lm_head"
    heads: EncoderHeads = EncoderHeads()
    architecture: str = "ForCausalLM"
    """End of the class's name, where the configuration has no ``architectures``."""
    single_norm: bool = False
    """Whether the parallel parts share one normalisation."""
    first_norm: bool = True
    """Whether the first block normalises what its attention reads."""
    joint_qk_norm: bool = False
    """Whether queries and keys are normalised over all heads of a token together."""
    inner_multiple: int = 0
    """Width of the MLP in that of the model, where the configuration does not say."""
    experts: str = ""
    """Field that is the number of experts."""
    sparse_from: str = ""
    """Field that is the number of leading blocks without experts."""
    moe_inner: str = "moe_intermediate_size"
    """Field that is the width of an expert."""
    shared_experts: str = ""
    """Field that is the number of an expert's widths that every token meets."""
    shared_inner: str = ""
    """Field that is the width of the expert that every token meets."""
    latent: bool = False
    """Whether attention reads latent keys and values (DeepSeek-V2)."""
    head_dim: int = 0
    """Channels of a head where the configuration does not say; 0: the width divided by the heads.
    """
    rotary_share: float = 1.0
    """Share of a head's channels that is rotated, where the configuration does not say."""
    window: Literal["", "always", "switched"] = ""
    """Whether ``sliding_window`` holds: never, where it is there, or where a second field says so.
    """
    full_every: int = 0
    """Every how many blocks one attends to all tokens, where others have a window; 0: none."""
    full_first: bool = False
    """Whether it is the first one of these, not the last."""
    unrotated: Literal["", "listed", "without window"] = ""
    """Blocks that do not rotate queries and keys by position: none; those whose number in
    ``no_rope_layers`` is 0, or without a list one in ``no_rope_layer_interval``; or those that
    attend to all tokens, where ``sliding_window`` is there."""


@dataclass(frozen=True)
class Tokens:
    """Tokens that one iteration computes."""

    batch: int
    """Sequences of a batch."""
    new: int
    """New tokens of each."""
    cache: int = 0
    """Earlier tokens of each, whose keys and values are there."""


@dataclass(frozen=True)
class ExpertSizes:
    """Experts of a block."""

    count: int
    chosen: int
    """Experts that a token meets."""
    inner: int
    """Width of one expert's hidden layer."""
    shared: int
    """Width of the expert of every token; 0: there is none."""
    layers: frozenset[int]
    """Blocks that have experts."""


@dataclass(frozen=True)
class LatentSizes:
    """Channels of attention to latent keys and values."""

    query_rank: int
    """Channels of the latent queries; 0: queries have none."""
    rank: int
    """Channels of the latent keys and values, which all heads share."""
    plain: int
    """Channels of a head's queries and keys that are not rotated by position."""
    rotated: int
    """Channels that are, of keys shared by all heads."""
    value: int
    """Channels of a head's values."""


@dataclass(frozen=True)
class BlockSizes:
    """One block's sizes."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    """Width of the MLP."""
    activation: str
    gated: bool
    biases: frozenset[str]
    """Products that add one, by the names in `TransformerFamily.biases`."""
    rotary: int = 0
    """Channels of a head that are rotated by position."""
    unrotated: frozenset[int] = frozenset()
    """Blocks that rotate none."""
    windows: Mapping[int, int] = field(default_factory=dict)
    """Tokens that a block attends to at most, by its number."""
    experts: ExpertSizes | None = None
    latent: LatentSizes | None = None
