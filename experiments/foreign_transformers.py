"""Small Hugging Face transformers with random weights, exported by PyTorch and fused.

``onnxruntime.transformers`` replaces patterns of operators by its fused attention, embeddings and
normalisations; each model is exported once and read before and after.
"""

# The generators are no dependencies: see `foreign_models.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

LENGTH, WIDTH, HEADS, WORDS = 16, 64, 4, 200


def _bert() -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        attn_implementation="eager",
    )
    return BertModel(config)


def _gpt2() -> Any:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        vocab_size=WORDS,
        n_embd=WIDTH,
        n_layer=2,
        n_head=HEADS,
        attn_implementation="eager",
        use_cache=False,
    )
    return GPT2Model(config)


def _vit() -> Any:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        image_size=32,
        patch_size=8,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        attn_implementation="eager",
    )
    return ViTModel(config)


def _llama() -> Any:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        intermediate_size=2 * WIDTH,
        attn_implementation="eager",
        use_cache=False,
    )
    return LlamaModel(config)


ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "bert": _bert,
    "gpt2": _gpt2,
    "llama": _llama,
    "vit": _vit,
}


def _export(name: str, dynamo: bool, path: Path) -> None:
    import torch

    torch.manual_seed(0)
    model = ARCHITECTURES[name]().eval()

    class FirstResult(torch.nn.Module):
        """Only the hidden states, so that the file has one result."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return self.model(x)[0]

    tokens = torch.ones((1, LENGTH), dtype=torch.long)
    example = torch.ones((1, 3, 32, 32)) if name == "vit" else tokens
    torch.onnx.export(
        FirstResult(), (example,), str(path), input_names=["x"], dynamo=dynamo, verbose=False
    )


def _fused(name: str, dynamo: bool, half: bool, path: Path) -> None:
    from onnxruntime.transformers import optimizer

    kinds = {"llama": "gpt2"}
    source = path.parent / f"{_plain_name(name, dynamo)}.onnx"
    if not source.exists():
        _export(name, dynamo, source)
    optimised = optimizer.optimize_model(
        str(source),
        model_type=kinds.get(name, name),
        num_heads=HEADS,
        hidden_size=WIDTH,
        opt_level=0,
    )
    if half:
        optimised.convert_float_to_float16(keep_io_types=True)
    optimised.save_model_to_file(str(path))


def _plain_name(name: str, dynamo: bool) -> str:
    return f"transformers_{name}_{'dynamo' if dynamo else 'script'}"


def makers() -> dict[str, Callable[[Path], None]]:
    """Return what writes each model's file, by name; fused ones follow their sources."""
    made: dict[str, Callable[[Path], None]] = {}
    for name in ARCHITECTURES:
        for dynamo in (False, True):
            plain = _plain_name(name, dynamo)
            made[plain] = partial(_export, name, dynamo)
            made[f"{plain}_fused"] = partial(_fused, name, dynamo, False)
    made["transformers_bert_script_fused_half"] = partial(_fused, "bert", False, True)
    return made
