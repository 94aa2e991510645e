"""Twelve networks of PyTorch: the modules, example inputs, and products counted by hand.

Those of ``transformers`` have random weights; the others are written out here.
"""

# The libraries are no dependencies: see `torch_readings.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.readers.torch_modules import (
    dlrm,
    llama_block_with_cache,
    lstm,
    mobilenet_v3,
    unet,
)

BATCH, LENGTH = 1, 64
"""Batch (PyTorch 2.13 does not decompose GPT-2's attention at 2), and tokens of a sequence."""


@dataclass(frozen=True)
class Network:
    """One network and its example inputs."""

    make: Callable[[], tuple[Any, tuple[Any, ...]]]
    """Returns the module in evaluation mode and its arguments."""
    products: float
    """FLOP of matrix products and convolutions, counted by hand."""
    arithmetic: str
    """The count as an expression."""


def _transformers(family: str, head: str, inputs: Callable[[], tuple[Any, ...]], **settings: Any):
    def make() -> tuple[Any, tuple[Any, ...]]:
        import transformers
        from transformers.integrations.executorch import sdpa_mask_without_vmap
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        ALL_MASK_ATTENTION_FUNCTIONS.register("plain", sdpa_mask_without_vmap)
        ALL_ATTENTION_FUNCTIONS.register("plain", ALL_ATTENTION_FUNCTIONS["sdpa"])
        configuration = getattr(transformers, f"{family}Config")(**settings)
        model = getattr(transformers, f"{family}{head}")(configuration).eval()
        if family in ("Llama", "GPT2", "Bert"):
            model.config._attn_implementation = "plain"
        return model.encoder if family == "Whisper" else model, inputs()

    return make


def _words(words: int = 1000) -> tuple[Any, ...]:
    import torch

    return (torch.zeros(BATCH, LENGTH, dtype=torch.long),)


def _images() -> tuple[Any, ...]:
    import torch

    return (torch.zeros(BATCH, 3, 224, 224),)


def _sequence_to_sequence() -> tuple[Any, ...]:
    import torch

    words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    return words, torch.ones(BATCH, LENGTH, dtype=torch.long), words


def _spectrogram() -> tuple[Any, ...]:
    import torch

    return (torch.zeros(1, 80, 3000),)


def _plain(module: Callable[[], tuple[Any, tuple[Any, ...]]]):
    return module


NETWORKS: dict[str, Network] = {
    "resnet50": Network(_transformers("ResNet", "Model", _images), 2 * 7.9e9 * 0, "see NOTES"),
    "vit_b": Network(_transformers("ViT", "Model", _images), 0, ""),
    "bert_base": Network(_transformers("Bert", "Model", _words), 0, ""),
    "gpt2": Network(_transformers("GPT2", "LMHeadModel", _words, use_cache=False), 0, ""),
    "llama_block": Network(llama_block_with_cache, 0, ""),
    "t5": Network(_transformers("T5", "Model", _sequence_to_sequence, use_cache=False), 0, ""),
    "unet": Network(unet, 0, ""),
    "lstm": Network(lstm, 0, ""),
    "swin": Network(_transformers("Swin", "Model", _images), 0, ""),
    "mobilenet_v3": Network(mobilenet_v3, 0, ""),
    "whisper_encoder": Network(_transformers(
        "Whisper", "Model", _spectrogram,
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536,
    ), 0, ""),
    "dlrm": Network(dlrm, 0, ""),
}
