"""Encoders, networks of two stacks, and towers over images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from go_rl.graphs.readers.hf.families.dense import ALL_BIASES, OPT_NAMES
from go_rl.graphs.readers.hf.family import EncoderHeads, Names, TransformerFamily

_BERT_NAMES = Names(
    root="bert",
    embed="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    token_types="embeddings.token_type_embeddings",
    embed_norm="embeddings.LayerNorm",
    layers="encoder.layer",
    final_norm="",
    attention_norm="attention.output.LayerNorm",
    q="attention.self.query",
    k="attention.self.key",
    v="attention.self.value",
    out="attention.output.dense",
    mlp_norm="output.LayerNorm",
    up="intermediate.dense",
    down="output.dense",
)
_BERT = TransformerFamily(
    names=_BERT_NAMES, kind="encoder", norm="layer", order="post", gated=False,
    biases={**ALL_BIASES, "transform": True}, positions="learned", activation="gelu", tied=True,
    heads=EncoderHeads(
        "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder", "cls.predictions.bias",
        pooler="bert.pooler.dense", classes="bert.pooler.dense",
    ),
    architecture="ForMaskedLM",
    only={"position_embedding_type": "absolute", "is_decoder": False},
)  # fmt: skip
_ROBERTA = replace(
    _BERT, names=replace(_BERT_NAMES, root="roberta"), reserved=2,
    heads=EncoderHeads(
        "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias",
        pooler="roberta.pooler.dense", classes="classifier.dense",
        sequence_classes="classifier.out_proj",
    ),
)  # fmt: skip
_DISTILBERT = replace(
    _BERT,
    names=Names(
        root="distilbert", embed="embeddings.word_embeddings",
        positions="embeddings.position_embeddings", embed_norm="embeddings.LayerNorm",
        layers="transformer.layer", final_norm="", attention_norm="sa_layer_norm",
        q="attention.q_lin", k="attention.k_lin", v="attention.v_lin", out="attention.out_lin",
        mlp_norm="output_layer_norm", up="ffn.lin1", down="ffn.lin2",
    ),
    fields={"hidden_size": "dim", "num_hidden_layers": "n_layers", "hidden_act": "activation",
            "num_attention_heads": "n_heads", "intermediate_size": "hidden_dim"},
    heads=EncoderHeads("vocab_transform", "vocab_layer_norm", "vocab_projector",
                       "vocab_projector.bias", classes="pre_classifier",
                       classes_activation="relu"),
    only={},
)  # fmt: skip
_MODERNBERT = TransformerFamily(
    names=Names(
        embed="embeddings.tok_embeddings", embed_norm="embeddings.norm", final_norm="final_norm",
        attention_norm="attn_norm", qkv="attn.Wqkv", out="attn.Wo", mlp_norm="mlp_norm",
        gate_up="mlp.Wi", down="mlp.Wo",
    ),
    kind="encoder", norm="layer-no-bias", first_norm=False, activation="gelu", tied=True,
    fields={"hidden_act": "hidden_activation", "sliding_window": "local_attention",
            "sliding_window_pattern": "global_attn_every_n_layers"},
    biases={**dict.fromkeys(("q", "k", "v", "out"), "attention_bias"), "mlp": "mlp_bias",
            "transform": "classifier_bias"},
    window="always", full_every=3, full_first=True,
    heads=EncoderHeads("head.dense", "head.norm", "decoder", "decoder.bias"),
    architecture="ForMaskedLM",
    only={"norm_bias": False, "decoder_bias": True, "classifier_activation": "gelu"},
)  # fmt: skip


def _t5_names(root: str, mlp: str, cross: bool) -> Names:
    def attention(prefix: str) -> tuple[str, str, str, str]:
        return f"{prefix}.q", f"{prefix}.k", f"{prefix}.v", f"{prefix}.o"

    q, k, v, out = attention("layer.0.SelfAttention")
    return Names(
        root=root,
        layers="block",
        final_norm="final_layer_norm",
        attention_norm="layer.0.layer_norm",
        q=q,
        k=k,
        v=v,
        out=out,
        bias_table="layer.0.SelfAttention.relative_attention_bias",
        cross_norm="layer.1.layer_norm" if cross else "",
        cross=attention("layer.1.EncDecAttention") if cross else None,
        mlp_norm=f"{mlp}.layer_norm",
        gate=f"{mlp}.DenseReluDense.wi_0",
        up=f"{mlp}.DenseReluDense.wi_1",
        down=f"{mlp}.DenseReluDense.wo",
    )


_T5 = TransformerFamily(
    names=_t5_names("decoder", "layer.2", True),
    encoder=_t5_names("encoder", "layer.1", False),
    kind="encoder-decoder",
    fields={"hidden_size": "d_model", "num_hidden_layers": "num_layers", "head_dim": "d_kv",
            "num_attention_heads": "num_heads", "intermediate_size": "d_ff",
            "max_position_embeddings": "n_positions", "hidden_act": "feed_forward_proj"},
    positions="relative",
    activation="relu",
    tied=True,
    architecture="ForConditionalGeneration",
)  # fmt: skip
_VIT_NAMES = Names(
    root="vit",
    embed="embeddings.patch_embeddings.projection",
    positions="embeddings.position_embeddings",
    layers="encoder.layer",
    final_norm="layernorm",
    attention_norm="layernorm_before",
    q="attention.attention.query",
    k="attention.attention.key",
    v="attention.attention.value",
    out="attention.output.dense",
    mlp_norm="layernorm_after",
    up="intermediate.dense",
    down="output.dense",
)
_VIT = TransformerFamily(
    names=_VIT_NAMES, kind="image", norm="layer", gated=False, positions="learned",
    activation="gelu", biases={**ALL_BIASES, "q": "qkv_bias", "k": "qkv_bias", "v": "qkv_bias"},
    biased=True,
    heads=EncoderHeads(pooler="vit.pooler.dense"), architecture="ForImageClassification",
    class_token="embeddings.cls_token",
)  # fmt: skip
_WHISPER_NAMES = replace(
    OPT_NAMES,
    final_norm="layer_norm",
    cross_norm="encoder_attn_layer_norm",
    cross=("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj",
           "encoder_attn.out_proj"),
)  # fmt: skip
_WHISPER = TransformerFamily(
    names=_WHISPER_NAMES,
    encoder=replace(_WHISPER_NAMES, root="model.encoder", cross_norm="", cross=None),
    kind="speech",
    fields={"hidden_size": "d_model", "num_hidden_layers": "decoder_layers",
            "num_attention_heads": "decoder_attention_heads", "hidden_act": "activation_function",
            "intermediate_size": "decoder_ffn_dim",
            "max_position_embeddings": "max_target_positions"},
    norm="layer",
    gated=False,
    biases={"q": True, "v": True, "out": True, "mlp": True},
    positions="learned",
    activation="gelu",
    tied=True,
    head="proj_out",
    architecture="ForConditionalGeneration",
)  # fmt: skip

ENCODERS: Mapping[str, TransformerFamily] = {
    "bert": _BERT,
    "distilbert": _DISTILBERT,
    "modernbert": _MODERNBERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "t5": _T5,
    "mt5": replace(_T5, tied=False),
    "vit": _VIT,
    "whisper": _WHISPER,
}
