"""Configurations and safetensors that are wrong: one clear error each, never a raw exception."""

from typing import Any

import pytest
from graphs.readers.hf_models import LLAMA_8B, SMALL

LLAMA = {**SMALL, "model_type": "llama"}


def quantised(method: str, **settings: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": method, **settings}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "lama"}, "model_type 'lama' is not read; did you mean 'llama'"),
        ({"model_type": 3}, "model_type is 3; it must name a family"),
        ({"hidden_size": None}, "no field 'hidden_size'"),
        ({"hidden_size": -4}, "hidden_size is -4; it must be a whole number in 1"),
        ({"hidden_size": "64"}, "hidden_size is '64'; it must be a whole number"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"hidden_size": 1 << 40}, "hidden_size is 1099511627776; it must be a whole number in"),
        ({"hidden_size": 66}, "num_attention_heads is 4; it must be a divisor of hidden_size"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3; it must be a divisor of the 4"),
        ({"num_hidden_layers": 100_000}, "num_hidden_layers is 100000"),
        ({"hidden_act": "sillu"}, "unknown activation; did you mean 'silu'"),
        ({"torch_dtype": "int3"}, "torch_dtype is 'int3'; it must be one of bfloat16"),
        ({"attention_bias": 1}, "attention_bias is 1; it must be true or false"),
        ({"architectures": "LlamaForCausalLM"}, "architectures is 'LlamaForCausalLM'"),
        ({"architectures": ["LlamaForQuestionAnswering"]}, "the head of 'LlamaForQuestion"),
        ({"quantization_config": {}}, "quantization_config: no field 'quant_method'"),
        ({"quantization_config": []}, "quantization_config is .*; it must be an object"),
        (quantised("awk"), "quant_method 'awk' is not read; did you mean 'awq'"),
        (quantised("gptq"), "quantization_config: no field 'bits'"),
        (quantised("gptq", bits=5), "bits is 5; it must be 2, 3, 4 or 8"),
        (quantised("awq", bits=4, group_size=0), "group_size is 0; it must be a whole number"),
        (quantised("fp8", weight_block_size=[128]), "weight_block_size is .* two sizes"),
        (quantised("fp8", activation_scheme="none"), "activation_scheme is 'none'"),
        (quantised("mxfp4"), "quant_method is 'mxfp4'; it must be another: no array here"),
        (quantised("bitsandbytes"), "one of load_in_8bit and load_in_4bit must be true"),
        (quantised("fp8", modules_to_not_convert="all"), "modules_to_not_convert is 'all'"),
        ({"model_type": "deepseek_v3", "kv_lora_rank": None}, "no field 'kv_lora_rank'"),
        ({"model_type": "deepseek_v2", "moe_layer_freq": 0}, "moe_layer_freq is 0"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "num_experts_per_tok is 9"),
        ({"model_type": "qwen2_moe", "mlp_only_layers": ["1"]}, r"mlp_only_layers is \['1'\]"),
        ({"model_type": "opt", "word_embed_proj_dim": 8}, "word_embed_proj_dim is 8"),
        ({"model_type": "vit", "patch_size": 5}, "patch_size is 5; it must be a divisor"),
    ],
)
def test_a_wrong_field_is_named(change, said, refused):
    refused({**LLAMA, "architectures": None, **change}, said)


@pytest.mark.parametrize(
    ("kind", "dims", "said"),
    [
        ("llama", {"sequnce": 8}, "no dimension 'sequnce'; did you mean 'sequence'"),
        ("bert", {"cache": 8}, "no dimension 'cache'"),
        ("vit", {"sequence": 8}, "no dimension 'sequence'. It has batch"),
        ("gpt2", {"sequence": 8, "cache": 60}, "68 tokens a sequence, and n_positions allows 64"),
        ("llama", {"batch": 1 << 40}, "more than 2\\^30"),
    ],
)
def test_a_wrong_dim_is_named(kind, dims, said, refused):
    refused({**SMALL, "model_type": kind}, said, dims=dims)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not safetensors"),
        ((1 << 40).to_bytes(8, "little") + b"{}", "more than the format allows"),
        ((100).to_bytes(8, "little") + b"{}", "truncated"),
        ((2).to_bytes(8, "little") + b"[]", "truncated or damaged"),
        ((10).to_bytes(8, "little") + b'{"a": "b"}', "'a': dtype None, shape None"),
    ],
)
def test_damaged_headers(tmp_path, content, said, refused):
    (tmp_path / "model.safetensors").write_bytes(content)
    refused(LLAMA_8B, said, file="config.json")
