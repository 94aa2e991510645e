"""Graphs read from files and names of Hugging Face."""

from typing import Any

import pytest
from graphs.readers.hf_models import LLAMA_8B, MODELS, SMALL, S, stored
from graphs.readers.hf_written import TOKENS, WRITTEN

from go_rl.core import OpGraph
from go_rl.graphs.readers.hf.families.known import FAMILIES


@pytest.mark.parametrize(
    "name", [n if n != "DeepSeek-V3" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS]
)
def test_counts_of_published_models(name, read):
    model = MODELS[name]
    graph = read(model.config, **({"sequence": S} if model.dims is None else model.dims))
    assert stored(graph) == model.parameters * model.itemsize
    assert model.parameters == pytest.approx(model.published, rel=0.01)
    assert graph.flops.sum() == pytest.approx(model.flops, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "pattern", "sparse"),
    [
        ("qwen2_moe", {}, [0, 1, 2, 3, 4, 5]),
        ("qwen2_moe", {"decoder_sparse_step": 2}, [1, 3, 5]),
        ("qwen3_moe", {"mlp_only_layers": [0, 4]}, [1, 2, 3, 5]),
        ("deepseek_v2", {"moe_layer_freq": 2}, [2, 4]),
        ("llama4_text", {"interleave_moe_layer_step": 3}, [2, 5]),
        ("llama4_text", {"moe_layers": [1]}, [1]),
    ],
)
def test_blocks_that_have_experts(kind, pattern, sparse, read):
    graph = read({**SMALL, "model_type": kind, "num_hidden_layers": 6, **pattern}, sequence=8)
    assert blocks_with(graph, "/topk") == sparse


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_is_read(kind, read):
    graph = read({**SMALL, "model_type": kind})
    assert graph.flops.sum() > 0
    assert graph.is_output.sum() == 1
    # Every operator leads to the result.
    assert set(graph.senders) | set(graph.is_output.nonzero()[0]) == set(range(graph.num_nodes))


@pytest.mark.parametrize(
    ("kind", "before", "since"),
    [
        ("qwen3_moe", {"num_experts": 4}, {"num_experts": None, "num_local_experts": 4}),
        ("qwen2_moe", {"use_sliding_window": False}, {"sliding_window": 0}),
        *((kind, {name: 0.75}, {"rope_parameters": {"partial_rotary_factor": 0.75}})
          for kind, name in (("phi3", "partial_rotary_factor"), ("gpt_neox", "rotary_pct"))),
    ],
)  # fmt: skip
def test_fields_as_transformers_5_writes_them(kind, before, since, read):
    def same(change: dict[str, Any]) -> tuple[object, ...]:
        fields = {**SMALL, "model_type": kind, **change}
        graph = read({k: v for k, v in fields.items() if v is not None}, sequence=8)
        return graph.names, graph.flops.tolist(), graph.weight_bytes.tolist()

    assert same(before) == same(since)


MATRICES_8B = {(4096, 4096): 2, (1024, 4096): 2, (14336, 4096): 2, (4096, 14336): 1}
"""Matrices of one block of Llama-3-8B: results and inputs, and how many there are."""
TWO_LAYERS = {**LLAMA_8B, "num_hidden_layers": 2}
REST_8B = 2 * (2 * 128256 * 4096 + (2 * 2 + 1) * 4096)
"""Bytes of tables, head and normalisations, which stay bfloat16."""


def blocks_8b(matrix: Any) -> float:
    return 2 * sum(count * matrix(*shape) for shape, count in MATRICES_8B.items())


@pytest.mark.parametrize(
    ("method", "settings", "matrix", "said"),
    [
        # A float32 scale for each 128 x 128.
        ("fp8", {"weight_block_size": [128, 128], "activation_scheme": "dynamic"},
         lambda r, c: r * c + 4 * (r // 128) * (c // 128), "float8, scales of 128 x 128"),
        # One for the matrix, one for its inputs.
        ("fp8", {"activation_scheme": "static"}, lambda r, c: r * c + 8, "of whole matrices"),
        # Half bytes; for each 128 inputs of a result a float16 scale and half a byte of zero point;
        # the group of each input as int32.
        ("gptq", {"bits": 4, "group_size": 128},
         lambda r, c: r * c / 2 + c / 128 * r * 2.5 + 4 * c, "GPTQ, 4 bits, groups of 128 inputs"),
        ("gptq", {"bits": 8, "group_size": -1},
         lambda r, c: r * c + 3 * r + 4 * c, "GPTQ, 8 bits, groups of all inputs"),
        ("awq", {"bits": 4, "group_size": 128, "zero_point": True},
         lambda r, c: r * c / 2 + c / 128 * r * 2.5, "AWQ, 4 bits"),
        ("awq", {"bits": 4, "group_size": 64, "zero_point": False},
         lambda r, c: r * c / 2 + c / 64 * r * 2, "AWQ, 4 bits"),
        ("bitsandbytes", {"load_in_8bit": True}, lambda r, c: r * c + 4 * r, "8 bits"),
        ("bitsandbytes", {"load_in_4bit": True}, lambda r, c: r * c / 2 + 4 * r * c / 64, "4 bits"),
        # A byte for each 64, a float32 for each 256 of them.
        ("bitsandbytes", {"load_in_4bit": True, "bnb_4bit_use_double_quant": True},
         lambda r, c: r * c / 2 + r * c / 64 + 4 * r * c / 64 / 256, "4 bits"),
    ],
)  # fmt: skip
def test_bytes_with_scales(method, settings, matrix, said, read):
    quantised = {"quantization_config": {"quant_method": method, **settings}}
    graph = read(TWO_LAYERS | quantised, sequence=8)
    assert stored(graph) == pytest.approx(blocks_8b(matrix) + REST_8B, rel=1e-12)
    assert said in " ".join(graph.meta["notes"])
    # Results and FLOP are those of bfloat16.
    plain = read(TWO_LAYERS, sequence=8)
    assert graph.output_bytes.tolist() == plain.output_bytes.tolist()
    assert graph.flops.tolist() == plain.flops.tolist()
    assert graph.bytes_accessed.sum() < plain.bytes_accessed.sum()


CONFIGS = {config["model_type"]: config for config, _, _ in WRITTEN}
PRODUCTS = ("aten.linear", "aten.scaled_dot_product_attention", "aten._grouped_mm")


def blocks_with(graph: OpGraph, end: str) -> list[int]:
    return [
        int(str(name).split("layers.")[1].split("/")[0])
        for name in graph.names
        if str(name).endswith(end)
    ]


@pytest.mark.parametrize(
    ("config", "parameters", "flops"),
    WRITTEN,
    ids=[config["model_type"] for config, _, _ in WRITTEN],
)
def test_counts_are_those_of_transformers(config, parameters, flops, read):
    graph = read(config, sequence=TOKENS)
    assert stored(graph) == 4 * parameters
    of_products = sum(
        work for work, op in zip(graph.flops, graph.op_type, strict=True) if op in PRODUCTS
    )
    # Biases and softmax come on top.
    assert flops < of_products < 1.01 * flops


@pytest.mark.parametrize(
    ("kind", "change", "rotated"),
    [
        ("smollm3", {}, [0, 1, 2, 4]),
        ("smollm3", {"no_rope_layers": None}, [0, 1, 2, 4]),
        ("smollm3", {"no_rope_layers": None, "no_rope_layer_interval": 2}, [0, 2, 4]),
        ("exaone4", {}, [0, 1, 2, 4]),
        ("exaone4", {"layer_types": None}, [0, 1, 2, 4]),
        ("exaone4", {"sliding_window": None}, [0, 1, 2, 3, 4]),
        ("cohere2", {}, [0, 1, 2, 4]),
        ("gpt_oss", {}, [0, 1, 2, 3, 4]),
        ("llama4_text", {"num_hidden_layers": 5, "no_rope_layers": [1, 0, 1, 1, 0]}, [0, 2, 3]),
    ],
)
def test_blocks_that_rotate(kind, change, rotated, read):
    config = CONFIGS.get(kind, {**SMALL, "model_type": kind})
    assert blocks_with(read({**config, **change}, sequence=8), "/q_rotary") == rotated


@pytest.mark.parametrize("listed", [{}, {"layer_types": None}])
def test_windows_and_sinks_of_gpt_oss(listed, read):
    graph = read({**CONFIGS["gpt_oss"], **listed}, cache=40)
    held = [
        float(size)
        for size, name in zip(graph.weight_bytes, graph.names, strict=True)
        if str(name).endswith("/self_attn/attention")
    ]
    # Keys and values of 2 heads of 64 channels, and the sinks of 4 heads, in float32.
    token, sinks = 2 * 2 * 64 * 4, 4 * 4
    assert held == [16 * token + sinks, 40 * token + sinks] * 2 + [16 * token + sinks]


@pytest.mark.parametrize("listed", [{}, {"layer_types": None, "global_attn_every_n_layers": 3}])
def test_windows_of_modernbert(listed, read):
    graph = read({**CONFIGS["modernbert"], **listed}, sequence=64)
    work = [
        float(flops)
        for flops, name in zip(graph.flops, graph.names, strict=True)
        if str(name).endswith("/attn/attention")
    ]
    assert [each / work[0] for each in work] == pytest.approx([1, 0.5, 0.5, 1, 0.5], rel=0.01)


def test_experts_of_gpt_oss_in_mxfp4(read):
    config = CONFIGS["gpt_oss"]
    plain = read(config, sequence=8)
    method = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    packed = read({**config, "quantization_config": method}, sequence=8)
    # 5 blocks of 6 experts: half a byte an element, and a byte for each 32 inputs of a result.
    matrices = 448 * 128 + 128 * 224
    saved = 5 * 6 * (4 * matrices - matrices / 2 - matrices / 32)
    assert stored(plain) - stored(packed) == saved
    assert "matrices are stored as MXFP4" in " ".join(packed.meta["notes"])


@pytest.mark.parametrize(
    ("kind", "modules"),
    [
        ("distilbert", ["pre_classifier", "classifier"]),
        ("modernbert", ["head/dense", "classifier"]),
        ("roberta", ["classifier/dense", "classifier/out_proj"]),
    ],
)
def test_products_before_the_classes_of_a_sequence(kind, modules, read):
    config = CONFIGS.get(kind, {**SMALL, "model_type": kind})
    graph = read({**config, "architectures": ["AForSequenceClassification"]}, sequence=8)
    assert set(modules) <= set(map(str, graph.names))


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("smollm3", {"no_rope_layers": [1, 1]}, "no_rope_layers is .*; it must be a list of 5"),
        ("smollm3", {"use_sliding_window": True}, "use_sliding_window is True; it must be False"),
        ("exaone4", {"layer_types": None, "sliding_window_pattern": "LLLG"},
         "sliding_window_pattern is 'LLLG'; it must be a whole number"),
        ("modernbert", {"norm_bias": True}, "norm_bias is True; it must be False"),
        ("distilbert", {"dim": None}, "no field 'dim'"),
        ("gpt_oss", {"num_local_experts": None}, "no field 'num_local_experts'"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_a_family_is_named(kind, change, said, refused):
    refused({**CONFIGS[kind], **change}, said)
