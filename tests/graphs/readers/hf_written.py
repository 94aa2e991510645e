"""Small configurations as transformers 5.24 writes them, with numbers of its models.

Each has the number of parameters, and FLOP of products by PyTorch's counter (`FlopCounterMode`) for
one sequence of ``TOKENS``.
"""

from __future__ import annotations

from typing import Any

TOKENS = 12
WRITTEN: list[tuple[dict[str, Any], int, int]] = [
    ({
        "model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 64,
        "rope_parameters": {"rope_theta": 2000000.0, "rope_type": "default"},
        "use_sliding_window": False, "sliding_window": None, "no_rope_layers": [1, 1, 1, 0, 1],
        "no_rope_layer_interval": 4,
        "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention",
         "full_attention"],
        "attention_bias": True, "mlp_bias": False, "tie_word_embeddings": True, "dtype": "float32",
    }, 691456, 16883712),
    ({
        "model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 64, "tie_word_embeddings": False,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "attention_bias": False, "dtype": "float32",
    }, 702784, 16883712),
    ({
        "model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 64, "tie_word_embeddings": False,
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 500000.0},
         "full_attention": {"rope_type": "default", "rope_theta": 500000.0}},
        "attention_bias": False, "sliding_window": 16,
        "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
         "full_attention", "sliding_attention"],
        "dtype": "float32",
    }, 702784, 16883712),
    ({
        "model_type": "granite", "architectures": ["GraniteForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 64, "tie_word_embeddings": False,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "attention_bias": False, "mlp_bias": True, "embedding_multiplier": 12.0,
        "logits_scaling": 8.0, "residual_multiplier": 0.22, "attention_multiplier": 0.01,
        "dtype": "float32",
    }, 704704, 16883712),
    ({
        "model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "vocab_size": 96,
        "max_position_embeddings": 64, "n_layers": 3, "n_heads": 4, "dim": 128, "hidden_dim": 224,
        "activation": "gelu", "tie_word_embeddings": True, "dtype": "float32",
    }, 410368, 9756672),
    ({
        "model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 64, "tie_word_embeddings": False,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "sliding_window": 16,
        "sliding_window_pattern": 4,
        "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
         "full_attention", "sliding_attention"],
        "head_dim": 32, "dtype": "float32",
    }, 702144, 16883712),
    ({
        "model_type": "glm4", "architectures": ["Glm4ForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "hidden_act": "silu",
        "max_position_embeddings": 64, "tie_word_embeddings": False,
        "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 0.5,
         "rope_type": "default"},
        "attention_bias": True, "dtype": "float32",
    }, 704384, 16883712),
    ({
        "model_type": "cohere2", "architectures": ["Cohere2ForCausalLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "logit_scale": 0.0625,
        "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "silu", "max_position_embeddings": 64, "tie_word_embeddings": True,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "attention_bias": False, "sliding_window": 16,
        "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
         "full_attention", "sliding_attention"],
        "head_dim": 32, "dtype": "float32",
    }, 688896, 16883712),
    ({
        "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 5,
        "num_local_experts": 6, "vocab_size": 96, "hidden_size": 128, "intermediate_size": 224,
        "head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 16,
        "tie_word_embeddings": False, "hidden_act": "silu", "max_position_embeddings": 64,
        "rope_parameters": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
         "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 4096,
         "rope_theta": 150000.0},
        "num_experts_per_tok": 2,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
         "full_attention", "sliding_attention"],
        "attention_bias": True, "dtype": "float32",
    }, 3122354, 33564672),
    ({
        "model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "vocab_size": 96,
        "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5,
        "num_attention_heads": 4, "hidden_activation": "gelu", "max_position_embeddings": 64,
        "norm_bias": False, "attention_bias": False,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
         "full_attention", "sliding_attention"],
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
         "full_attention": {"rope_type": "default", "rope_theta": 160000.0}},
        "local_attention": 32, "mlp_bias": False, "decoder_bias": True,
        "classifier_pooling": "cls", "classifier_bias": False, "classifier_activation": "gelu",
        "tie_word_embeddings": True, "dtype": "float32",
    }, 788064, 19243008),
]  # fmt: skip
"""Configuration, parameters, and FLOP of each model."""
