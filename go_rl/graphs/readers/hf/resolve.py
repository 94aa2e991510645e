"""Sizes of a network from the fields of its configuration."""

from __future__ import annotations

from collections.abc import Mapping

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.hf.family import BlockSizes, ExpertSizes, LatentSizes, TransformerFamily
from go_rl.graphs.readers.hf.mlp import ACTIVATIONS
from go_rl.graphs.readers.hf.model_config import ModelConfig

MOST_LAYERS = 512
MOST_EXPERTS = 512
GATED = "gated-"
WINDOWED = ("sliding_attention", "chunked_attention")
"""Blocks that attend to a window, in ``layer_types``."""
ELEMENT_BYTES = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0, "float64": 8.0,
                 "float8_e4m3fn": 1.0, "float8_e5m2": 1.0}  # fmt: skip
"""Bytes of an element by the value of ``torch_dtype``."""


def torch_dtype(config: ModelConfig) -> tuple[str, float]:
    """Return the name and bytes of the element type; float32 where the configuration has none.

    Raises:
        ReadError: a type that is not known.
    """
    field = "dtype" if config.has("dtype") else "torch_dtype"
    name = config.text(field, "float32").removeprefix("torch.")
    if name not in ELEMENT_BYTES:
        raise config.wrong(field, f"one of {', '.join(ELEMENT_BYTES)}")
    return name, ELEMENT_BYTES[name]


def block_sizes(config: ModelConfig, family: TransformerFamily) -> BlockSizes:
    """Return the sizes of the blocks of the stack that a configuration names first.

    Raises:
        ReadError: a field is missing, of a wrong type, out of range, or does not fit another.
    """
    _check_only(config, family)
    hidden = config.count("hidden_size")
    heads = config.count("num_attention_heads", most=hidden)
    kv_heads = config.count("num_key_value_heads", heads)
    if heads % kv_heads:
        raise config.wrong("num_key_value_heads", f"a divisor of the {heads} heads")
    head_dim = config.count("head_dim", family.head_dim or hidden // heads)
    stated = config.has("head_dim") or family.head_dim or family.latent
    if not stated and hidden % heads:
        name = config.name("hidden_size")
        raise config.wrong("num_attention_heads", f"a divisor of {name}, {hidden}")
    layers = config.count("num_hidden_layers", most=MOST_LAYERS)
    activation, gated = _activation(config, family)
    windows = _windows(config, family, layers)
    biases = (part for part, said in family.biases.items() if _biased(config, family, said))
    inner = config.count("intermediate_size", family.inner_multiple * hidden or None)
    return BlockSizes(
        hidden, layers, heads, kv_heads, head_dim, inner, activation, gated,
        biases=frozenset(biases),
        rotary=_rotary(config, family, head_dim),
        unrotated=_unrotated(config, family, layers, windows),
        windows=windows,
        experts=_experts(config, family, layers),
        latent=_latent(config) if family.latent else None,
    )  # fmt: skip


def _check_only(config: ModelConfig, family: TransformerFamily) -> None:
    """Refuse what makes a network that is not read."""
    for field, value in family.only.items():
        is_field = isinstance(value, str) and value.startswith("=")
        right = config.fields.get(value[1:]) if is_field else value
        if config.has(field) and config.fields[field] != right:
            raise config.wrong(field, f"{right!r}: other networks of the family are not read")


def _activation(config: ModelConfig, family: TransformerFamily) -> tuple[str, bool]:
    name = config.text("hidden_act", family.activation)
    gated = family.gated
    if family.kind == "encoder-decoder":
        gated = name.startswith(GATED)
        name = name.removeprefix(GATED)
    if name not in ACTIVATIONS:
        hint = nearest(name, ACTIVATIONS)
        raise ReadError(
            f"{config.where}: {config.name('hidden_act')} is {name!r}, an unknown activation{hint}"
        )
    return name, gated


def _biased(config: ModelConfig, family: TransformerFamily, said: bool | str) -> bool:
    return said if isinstance(said, bool) else config.flag(said, family.biased)


def _latent(config: ModelConfig) -> LatentSizes:
    return LatentSizes(
        query_rank=config.count("q_lora_rank", 0, 0),
        rank=config.count("kv_lora_rank"),
        plain=config.count("qk_nope_head_dim"),
        rotated=config.count("qk_rope_head_dim"),
        value=config.count("v_head_dim"),
    )


def _rotary(config: ModelConfig, family: TransformerFamily, head_dim: int) -> int:
    if family.positions != "rotary":
        return 0
    share = family.rotary_share
    if config.has("rope_parameters"):  # of transformers 5
        share = config.part("rope_parameters").fraction("partial_rotary_factor", share)
    field = "rotary_pct" if config.has("rotary_pct") else "partial_rotary_factor"
    return int(head_dim * config.fraction(field, share))


def _windows(config: ModelConfig, family: TransformerFamily, layers: int) -> dict[int, int]:
    """Blocks that attend to a window: those that the configuration lists, else by the family's
    rule."""
    if not family.window or not config.has("sliding_window"):
        return {}
    if family.window == "switched" and not config.flag("use_sliding_window", False):
        return {}
    window = config.count("sliding_window")
    if config.has("layer_types"):
        kinds = config.fields["layer_types"]
        if not isinstance(kinds, list) or len(kinds) != layers:
            raise config.wrong("layer_types", f"a list of {layers} names")
        return {i: window for i, kind in enumerate(kinds) if kind in WINDOWED}
    if rotated := config.numbers("no_rope_layers"):
        return {i: window for i, flag in enumerate(rotated[:layers]) if flag}
    if family.window == "switched":
        first = config.count("max_window_layers", layers, 0)
        return dict.fromkeys(range(first, layers), window)
    every = config.count("sliding_window_pattern", family.full_every, 0)
    shift = 0 if family.full_first else 1
    return {i: window for i in range(layers) if not every or (i + shift) % every}


def _unrotated(
    config: ModelConfig, family: TransformerFamily, layers: int, windows: Mapping[int, int]
) -> frozenset[int]:
    """Blocks whose queries and keys are not rotated."""
    if not family.unrotated:
        return frozenset()
    if family.unrotated == "without window":
        if not config.has("sliding_window"):
            return frozenset()
        return frozenset(range(layers)).difference(windows)
    if rotated := config.numbers("no_rope_layers"):
        if len(rotated) < layers:
            raise config.wrong("no_rope_layers", f"a list of {layers} numbers, 0 or 1")
        return frozenset(i for i, flag in enumerate(rotated[:layers]) if not flag)
    every = config.count("no_rope_layer_interval", 4)
    return frozenset(range(every - 1, layers, every))


def _experts(config: ModelConfig, family: TransformerFamily, layers: int) -> ExpertSizes | None:
    if not family.experts:
        return None
    count = config.count(family.experts, most=MOST_EXPERTS)
    inner = config.count(family.moe_inner)
    shared = config.count(family.shared_inner, 0, 0) if family.shared_inner else 0
    if family.shared_experts:
        shared = inner * config.count(family.shared_experts, 0, 0, MOST_EXPERTS)
    return ExpertSizes(
        count,
        config.count("num_experts_per_tok", most=count),
        inner,
        shared,
        _expert_layers(config, family, layers),
    )


def _expert_layers(config: ModelConfig, family: TransformerFamily, layers: int) -> frozenset[int]:
    """Blocks that have experts: those listed, or from the first one every this many."""
    if listed := config.numbers("moe_layers"):
        return frozenset(listed)
    first = config.count(family.sparse_from, 0, 0, layers) if family.sparse_from else 0
    # Qwen and Llama count blocks from 1, DeepSeek from 0.
    later, sooner = config.count("decoder_sparse_step", 1), config.count("moe_layer_freq", 1)
    plain = config.numbers("mlp_only_layers")
    return frozenset(
        i for i in range(first, layers) if not ((i + 1) % later or i % sooner or i in plain)
    )
