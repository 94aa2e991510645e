"""Families whose numbers are those of their models in transformers."""

from __future__ import annotations

from typing import Any

import pytest
from graphs.readers.hf_models import SMALL, Read, stored
from graphs.readers.hf_written import TOKENS, WRITTEN

from go_rl.core import OpGraph

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
def test_counts_are_those_of_transformers(
    config: dict[str, Any], parameters: int, flops: int, read: Read
) -> None:
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
def test_blocks_that_rotate(
    kind: str, change: dict[str, Any], rotated: list[int], read: Read
) -> None:
    config = CONFIGS.get(kind, {**SMALL, "model_type": kind})
    assert blocks_with(read({**config, **change}, sequence=8), "/q_rotary") == rotated


@pytest.mark.parametrize("listed", [{}, {"layer_types": None}])
def test_windows_and_sinks_of_gpt_oss(listed: dict[str, Any], read: Read) -> None:
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
def test_windows_of_modernbert(listed: dict[str, Any], read: Read) -> None:
    graph = read({**CONFIGS["modernbert"], **listed}, sequence=64)
    work = [
        float(flops)
        for flops, name in zip(graph.flops, graph.names, strict=True)
        if str(name).endswith("/attn/attention")
    ]
    assert [each / work[0] for each in work] == pytest.approx([1, 0.5, 0.5, 1, 0.5], rel=0.01)


def test_experts_of_gpt_oss_in_mxfp4(read: Read) -> None:
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
def test_products_before_the_classes_of_a_sequence(
    kind: str, modules: list[str], read: Read
) -> None:
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
def test_a_wrong_field_of_a_family_is_named(
    kind: str, change: dict[str, Any], said: str, refused: Any
) -> None:
    refused({**CONFIGS[kind], **change}, said)
