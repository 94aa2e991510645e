"""Configurations of models that read images and text: the parts, each a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.hf.families.known import FAMILIES
from go_rl.graphs.readers.hf.family import Names, TransformerFamily
from go_rl.graphs.readers.hf.model_config import ModelConfig

Projector = Literal["mlp", "linear", "pool", "merge", "shuffle"]
"""Two products; one; a mean of neighbours, a normalisation and a product; neighbours as one token
and two products; or the same and one more."""


@dataclass(frozen=True)
class MultimodalFamily:
    """One family of models that read images and text."""

    towers: Mapping[str, TransformerFamily]
    """Towers by the ``model_type`` of ``vision_config``; the first one where it has none."""
    projector: Projector
    text: str
    """Family of the language model where its configuration names none that is read."""
    text_root: str = "language_model.model"
    text_head: str = "language_model.lm_head"
    dims: tuple[str, ...] = ()
    """Dims beside the number of images."""


_BIASES: dict[str, bool | str] = dict.fromkeys(("q", "k", "v", "out", "mlp"), True)
_SIGLIP_NAMES = Names(
    root="vision_tower.vision_model",
    embed="embeddings.patch_embedding",
    positions="embeddings.position_embedding.weight",
    layers="encoder.layers",
    final_norm="post_layernorm",
    attention_norm="layer_norm1",
    out="self_attn.out_proj",
    mlp_norm="layer_norm2",
    up="mlp.fc1",
    down="mlp.fc2",
)
_SIGLIP = TransformerFamily(
    names=_SIGLIP_NAMES, kind="image", norm="layer", gated=False, positions="learned",
    activation="gelu_pytorch_tanh", biases=_BIASES,
)  # fmt: skip
_CLIP = replace(
    _SIGLIP, names=replace(_SIGLIP_NAMES, embed_norm="pre_layrnorm", final_norm=""),
    activation="quick_gelu", patch_bias=False, class_token="embeddings.class_embedding",
)  # fmt: skip
_QWEN_NAMES = Names(
    root="visual", embed="patch_embed.proj", layers="blocks", final_norm="",
    attention_norm="norm1", qkv="attn.qkv", out="attn.proj", mlp_norm="norm2", up="mlp.fc1",
    down="mlp.fc2",
)  # fmt: skip
_QWEN2_TOWER = TransformerFamily(
    names=_QWEN_NAMES, kind="image", norm="layer", gated=False, activation="quick_gelu",
    biases=_BIASES, inner_multiple=4, only={"mlp_ratio": 4},
    fields={"hidden_size": "embed_dim", "num_hidden_layers": "depth",
            "num_attention_heads": "num_heads", "num_channels": "in_channels",
            "output_size": "hidden_size"},
)  # fmt: skip
_QWEN25_TOWER = replace(
    _QWEN2_TOWER,
    names=replace(_QWEN_NAMES, up="mlp.up_proj", gate="mlp.gate_proj", down="mlp.down_proj"),
    norm="rms", gated=True, activation="silu", inner_multiple=0, only={},
    fields={"num_hidden_layers": "depth", "num_attention_heads": "num_heads",
            "num_channels": "in_channels", "output_size": "out_hidden_size"},
)  # fmt: skip
_QWEN2_VL = MultimodalFamily(
    {"qwen2_vl": _QWEN2_TOWER}, "merge", "qwen2", "model", "lm_head", ("height", "width")
)
_LLAMA4_TOWER = TransformerFamily(
    names=Names(
        root="vision_model", embed="patch_embedding.linear", positions="positional_embedding_vlm",
        embed_norm="layernorm_pre", layers="model.layers", final_norm="layernorm_post",
        up="mlp.fc1", down="mlp.fc2",
    ),
    kind="image", norm="layer", gated=False, activation="gelu", biases=_BIASES,
    patch_bias=False, class_token="class_embedding",
)  # fmt: skip

MULTIMODAL: Mapping[str, MultimodalFamily] = {
    "llava": MultimodalFamily(
        {"clip_vision_model": _CLIP, "siglip_vision_model": _SIGLIP}, "mlp", "llama"
    ),
    "paligemma": MultimodalFamily({"siglip_vision_model": _SIGLIP}, "linear", "gemma"),
    "gemma3": MultimodalFamily({"siglip_vision_model": _SIGLIP}, "pool", "gemma3_text"),
    "llama4": MultimodalFamily({"llama4_vision_model": _LLAMA4_TOWER}, "shuffle", "llama4_text"),
    "qwen2_vl": _QWEN2_VL,
    "qwen2_5_vl": replace(_QWEN2_VL, towers={"qwen2_5_vl": _QWEN25_TOWER}),
}

CLASS_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "llama": {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
              "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 2048},
    "mistral": {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
                "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                "max_position_embeddings": 131072, "sliding_window": 4096},
    "qwen2": {"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
              "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
              "max_position_embeddings": 32768},
    "gemma": {"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576,
              "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16,
              "head_dim": 256, "max_position_embeddings": 8192},
    "gemma2": {"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216,
               "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
               "head_dim": 256, "max_position_embeddings": 8192, "sliding_window": 4096},
    "gemma3_text": {"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
                    "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
                    "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 4096},
    "llama4_text": {"vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192,
                    "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
                    "num_attention_heads": 40, "num_key_value_heads": 8, "num_experts_per_tok": 1,
                    "num_local_experts": 16, "attention_chunk_size": 8192,
                    "max_position_embeddings": 131072},
    "llama4_vision_model": {"hidden_size": 768, "intermediate_size": 5632, "num_hidden_layers": 34,
                            "num_attention_heads": 16, "image_size": 448, "patch_size": 14,
                            "vision_output_dim": 7680, "projector_input_dim": 4096,
                            "projector_output_dim": 4096},
    "clip_vision_model": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                          "num_attention_heads": 12, "image_size": 224, "patch_size": 32},
    "siglip_vision_model": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                            "num_attention_heads": 12, "image_size": 224, "patch_size": 16},
    "qwen2_vl": {"depth": 32, "embed_dim": 1280, "num_heads": 16,
                 "hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2,
                 "temporal_patch_size": 2},
    "qwen2_5_vl": {"depth": 32, "hidden_size": 3584, "intermediate_size": 3420, "num_heads": 16,
                   "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
                   "out_hidden_size": 3584, "window_size": 112,
                   "fullatt_block_indexes": [7, 15, 23, 31]},
}  # fmt: skip
"""Defaults in transformers of the fields that a configuration inside another one leaves out."""

VISION = "vision_config"
TEXTS = ("text_config", "language_config")
"""Fields that hold the language model's configuration; without them the whole one is it."""

_TIED = "tie_word_embeddings"


@dataclass(frozen=True)
class Multimodal:
    """Parts of a model that reads images and text."""

    whole: ModelConfig
    family: MultimodalFamily
    vision: ModelConfig
    tower: TransformerFamily
    text: ModelConfig
    language: TransformerFamily
    """Family of the language model."""

    @property
    def dims(self) -> tuple[str, ...]:
        """Dims beside those of the language model."""
        return ("images", *self.family.dims)


def multimodal(kind: str, where: str, fields: Mapping[str, Any], notes: list[str]) -> Multimodal:
    """Return the parts of a configuration of family ``kind``.

    Raises:
        ReadError: a part is missing, or of a family that is not read.
    """
    family, whole = MULTIMODAL[kind], ModelConfig(where, fields, {})
    vision, tower = _vision(whole, family, notes)
    text, language = _text(whole, family, notes)
    names = replace(language.names, root=family.text_root)
    language = replace(language, names=names, head=family.text_head)
    return Multimodal(whole, family, vision, tower, text, language)


def _vision(
    whole: ModelConfig, family: MultimodalFamily, notes: list[str]
) -> tuple[ModelConfig, TransformerFamily]:
    first = next(iter(family.towers))
    if not whole.has(VISION):
        raise ReadError(f"{whole.where}: no field {VISION!r}{nearest(VISION, whole.fields)}")
    part = whole.part(VISION)
    kind = part.text("model_type", first)
    kind = kind if kind in family.towers else kind.removesuffix("_vision")  # of transformers 5
    if kind not in family.towers:
        raise ReadError(
            f"{part.where}: model_type {kind!r} is not read; "
            f"{whole.fields['model_type']} has {' or '.join(family.towers)}"
        )
    tower = family.towers[kind]
    return _filled(part, kind, tower.fields, notes), tower


def _text(
    whole: ModelConfig, family: MultimodalFamily, notes: list[str]
) -> tuple[ModelConfig, TransformerFamily]:
    field = next((each for each in TEXTS if whole.has(each)), None)
    if field is None:
        language = FAMILIES[family.text]
        return replace(whole, aliases=language.fields), language
    part = whole.part(field)
    kind = part.text("model_type", family.text)
    if kind not in FAMILIES and kind.startswith(whole.text("model_type")):
        kind = family.text
    if kind not in FAMILIES or FAMILIES[kind].kind != "decoder":
        raise ReadError(
            f"{part.where}: model_type {kind!r} is no language model that is read"
            f"{nearest(kind, FAMILIES)}"
        )
    language = FAMILIES[kind]
    filled = _filled(part, kind, language.fields, notes)
    if not whole.has(_TIED):
        return filled, language
    return replace(filled, fields={**filled.fields, _TIED: whole.fields[_TIED]}), language


def _filled(
    part: ModelConfig, kind: str, aliases: Mapping[str, str], notes: list[str]
) -> ModelConfig:
    """Return a part with its class's value for each field left out, which a note names."""
    left = {k: v for k, v in CLASS_DEFAULTS.get(kind, {}).items() if not part.has(k)}
    if left:
        field, said = part.where.rpartition(" ")[2], ", ".join(f"{k}={v}" for k, v in left.items())
        notes.append(f"{field} leaves out what its class has: {said}")
    return ModelConfig(part.where, {**part.fields, **left}, aliases)
