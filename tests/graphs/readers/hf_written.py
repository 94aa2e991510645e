"""Small configurations as transformers 5.24 writes them, with numbers of its models.

Each has the number of parameters, and FLOP of products by PyTorch's counter (`FlopCounterMode`) for
one sequence of ``TOKENS``.
"""

from typing import Any

TOKENS = 12


def _written(kind: str, model: str, **fields: Any) -> dict[str, Any]:
    """A configuration with the fields that all families share."""
    shared = {"vocab_size": 96, "max_position_embeddings": 64, "dtype": "float32"}
    return {"model_type": kind, "architectures": [model], **shared, **fields}


def _decoder(kind: str, model: str, **fields: Any) -> dict[str, Any]:
    """A configuration of a language model, untied and rotated as usual unless told otherwise."""
    usual = {
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5, "hidden_act": "silu",
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    }  # fmt: skip
    return _written(kind, f"{model}ForCausalLM", **{**usual, **fields})


def _layers(kinds: str) -> list[str]:
    """Types of layers: f for full attention, s for a sliding window."""
    return [{"f": "full_attention", "s": "sliding_attention"}[kind] for kind in kinds]


WRITTEN: list[tuple[dict[str, Any], int, int]] = [
    (_decoder(
        "smollm3", "SmolLM3", rope_parameters={"rope_theta": 2000000.0, "rope_type": "default"},
        use_sliding_window=False, sliding_window=None, no_rope_layers=[1, 1, 1, 0, 1],
        no_rope_layer_interval=4, layer_types=_layers("fffff"), attention_bias=True,
        mlp_bias=False, tie_word_embeddings=True,
    ), 691456, 16883712),
    (_decoder("olmo2", "Olmo2", attention_bias=False), 702784, 16883712),
    (_decoder(
        "olmo3", "Olmo3", attention_bias=False, sliding_window=16, layer_types=_layers("sssfs"),
        rope_parameters={kind: {"rope_type": "default", "rope_theta": 500000.0}
                         for kind in _layers("sf")},
    ), 702784, 16883712),
    (_decoder(
        "granite", "Granite", attention_bias=False, mlp_bias=True, embedding_multiplier=12.0,
        logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.01,
    ), 704704, 16883712),
    (_written(
        "distilbert", "DistilBertForMaskedLM", n_layers=3, n_heads=4, dim=128, hidden_dim=224,
        activation="gelu", tie_word_embeddings=True,
    ), 410368, 9756672),
    (_decoder(
        "exaone4", "Exaone4", sliding_window=16, sliding_window_pattern=4, head_dim=32,
        layer_types=_layers("sssfs"),
    ), 702144, 16883712),
    (_decoder(
        "glm4", "Glm4", head_dim=32, attention_bias=True, rope_parameters={
            "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "rope_type": "default"},
    ), 704384, 16883712),
    (_decoder(
        "cohere2", "Cohere2", logit_scale=0.0625, tie_word_embeddings=True, attention_bias=False,
        sliding_window=16, layer_types=_layers("sssfs"), head_dim=32,
    ), 688896, 16883712),
    (_decoder(
        "gpt_oss", "GptOss", num_local_experts=6, head_dim=64, sliding_window=16,
        rope_parameters={"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                         "truncate": False, "original_max_position_embeddings": 4096,
                         "rope_theta": 150000.0},
        num_experts_per_tok=2, layer_types=_layers("sfsfs"), attention_bias=True,
    ), 3122354, 33564672),
    (_written(
        "modernbert", "ModernBertForMaskedLM", hidden_size=128, intermediate_size=224,
        num_hidden_layers=5, num_attention_heads=4, hidden_activation="gelu", norm_bias=False,
        attention_bias=False, layer_types=_layers("fssfs"),
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                         "full_attention": {"rope_type": "default", "rope_theta": 160000.0}},
        local_attention=32, mlp_bias=False, decoder_bias=True, classifier_pooling="cls",
        classifier_bias=False, classifier_activation="gelu", tie_word_embeddings=True,
    ), 788064, 19243008),
]  # fmt: skip
"""Configuration, parameters, and FLOP of each model."""
