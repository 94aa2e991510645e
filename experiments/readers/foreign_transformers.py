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


COMMON: dict[str, Any] = {
    "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS,
    "intermediate_size": 4 * WIDTH,
}  # fmt: skip


def transformer(family: str, head: str = "Model", **settings: Any) -> Any:
    """Return a model of ``transformers`` with random weights, attention in pieces."""
    import transformers

    configuration = getattr(transformers, f"{family}Config")(
        **settings, attn_implementation="eager"
    )
    return getattr(transformers, f"{family}{head}")(configuration)


def _classic_bert() -> Any:
    """BERT as it was first written, which is the pattern that the fusions look for."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        """Attention and two products, each with its residual and normalisation."""

        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in "qkvo")
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def heads(self, x: Any) -> Any:
            return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

        def forward(self, x: Any, mask: Any) -> Any:
            query, key, value = (self.heads(part(x)) for part in (self.query, self.key, self.value))
            scores = torch.matmul(query, key.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5
            weights = torch.softmax(scores + mask, dim=-1)
            mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
            mixed = mixed.view(mixed.size(0), mixed.size(1), WIDTH)
            x = self.first(self.out(mixed) + x)
            return self.second(self.narrow(nn.functional.gelu(self.wide(x))) + x)

    class Bert(nn.Module):
        """Sum of three embeddings, then the layers."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.kinds = nn.Embedding(WORDS, WIDTH), nn.Embedding(2, WIDTH)
            self.places, self.norm = nn.Embedding(LENGTH, WIDTH), nn.LayerNorm(WIDTH)
            self.layers = nn.ModuleList([Layer(), Layer()])
            self.register_buffer("order", torch.arange(LENGTH).unsqueeze(0))

        def forward(self, x: Any, mask: Any, kinds: Any) -> Any:
            open_ = (1.0 - mask.unsqueeze(1).unsqueeze(2).to(torch.float32)) * -10000.0
            places = self.places(self.order[:, : x.size(1)])
            x = self.norm(self.words(x) + places + self.kinds(kinds))
            for layer in self.layers:
                x = layer(x, open_)
            return (x,)

    return Bert()


ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "bert": partial(transformer, "Bert", **COMMON, vocab_size=WORDS),
    "classic_bert": _classic_bert,
    "gpt2": partial(
        transformer, "GPT2", vocab_size=WORDS, n_embd=WIDTH, n_layer=2, n_head=HEADS,
        use_cache=False,
    ),
    "llama": partial(
        transformer, "Llama", **{**COMMON, "intermediate_size": 2 * WIDTH}, vocab_size=WORDS,
        num_key_value_heads=2, use_cache=False,
    ),
    "vit": partial(transformer, "ViT", **COMMON, image_size=32, patch_size=8),
}  # fmt: skip


def _export(name: str, dynamo: bool, path: Path) -> None:
    import torch

    torch.manual_seed(0)
    model = ARCHITECTURES[name]().eval()

    class FirstResult(torch.nn.Module):
        """Only the hidden states, so that the file has one result."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *x: Any) -> Any:
            return self.model(*x)[0]

    tokens = torch.ones((1, LENGTH), dtype=torch.long)
    examples = {"vit": (torch.ones((1, 3, 32, 32)),), "classic_bert": (tokens,) * 3}
    given = examples.get(name, (tokens,))
    names = ["input_ids", "attention_mask", "token_type_ids"][: len(given)]
    torch.onnx.export(
        FirstResult(), given, str(path), input_names=names, dynamo=dynamo, external_data=False,
        verbose=False,
    )  # fmt: skip


def _fused(name: str, dynamo: bool, half: bool, path: Path) -> None:
    from onnxruntime.transformers import optimizer

    kinds = {"classic_bert": "bert", "llama": "gpt2"}
    source = path.parent / f"{_plain_name(name, dynamo)}.onnx"
    if not source.exists():
        _export(name, dynamo, source)
    optimised = optimizer.optimize_model(
        str(source), model_type=kinds.get(name, name), num_heads=HEADS, hidden_size=WIDTH,
        opt_level=0,
    )  # fmt: skip
    if half:
        optimised.convert_float_to_float16(keep_io_types=True)
    optimised.save_model_to_file(str(path))


NOT_SCRIPTED = ("gpt2", "llama")
"""They use `torch.diff`, which the exporter by script does not have."""


def _plain_name(name: str, dynamo: bool) -> str:
    return f"transformers_{name}_{'dynamo' if dynamo else 'script'}"


FUSED = "fused by onnxruntime.transformers"


def makers() -> dict[str, tuple[str, str, Callable[[Path], None]]]:
    """Return by name who wrote each model, its source, and what writes its file; fused ones follow
    their sources."""
    made: dict[str, tuple[str, str, Callable[[Path], None]]] = {}
    for name in ARCHITECTURES:
        for dynamo in (False, True) if name not in NOT_SCRIPTED else (True,):
            plain, exporter = _plain_name(name, dynamo), "dynamo" if dynamo else "script"
            written = f"transformers, torch.onnx ({exporter})"
            made[plain] = written, "", partial(_export, name, dynamo)
            made[f"{plain}_fused"] = FUSED, plain, partial(_fused, name, dynamo, False)
    plain, half = _plain_name("classic_bert", False), partial(_fused, "classic_bert", False, True)
    made[f"{plain}_fused_half"] = "fused, half precision", plain, half
    return made
