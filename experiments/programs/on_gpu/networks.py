"""Networks that are measured on a GPU and exported here: torchvision's and transformers' own, with
random weights. Needs torch, torchvision and transformers only, not go_rl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Built = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


class FirstOutput(torch.nn.Module):
    """A model of transformers that takes one tensor and gives one."""

    def __init__(self, model: torch.nn.Module, name: str, **options: Any) -> None:
        super().__init__()
        self.model, self.name, self.options = model, name, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first output."""
        return self.model(**{self.name: x}, **self.options, return_dict=False)[0]


def _vision(name: str, batch: int, side: int = 224) -> Callable[[], Built]:
    def build() -> Built:
        import torchvision

        model = getattr(torchvision.models, name)(weights=None)
        return model, (torch.randn(batch, 3, side, side),)

    return build


def _language(name: str, batch: int, length: int, **config: Any) -> Callable[[], Built]:
    """A model of transformers by its class, with the sizes of a published one."""

    def build() -> Built:
        import transformers

        model_class = getattr(transformers, name)
        options: dict[str, Any] = {"use_cache": False} if "GPT2" in name or "Llama" in name else {}
        settings = model_class.config_class(**config, attn_implementation="eager")
        model = FirstOutput(model_class(settings), "input_ids", **options)
        return model, (torch.randint(0, 1000, (batch, length)),)

    return build


def _whisper(batch: int) -> Callable[[], Built]:
    def build() -> Built:
        import transformers
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        config = transformers.WhisperConfig(
            d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048,
            attn_implementation="eager",
        )  # fmt: skip
        model = FirstOutput(WhisperEncoder(config), "input_features")
        return model, (torch.randn(batch, 80, 3000),)

    return build


class Recommender(torch.nn.Module):
    """DLRM with 26 tables."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.tables = nn.ModuleList(nn.Embedding(100_000, 64) for _ in range(26))
        self.below = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                   nn.Linear(256, 64), nn.ReLU())  # fmt: skip
        self.above = nn.Sequential(nn.Linear(64 + 27 * 27, 512), nn.ReLU(), nn.Linear(512, 256),
                                   nn.ReLU(), nn.Linear(256, 1))  # fmt: skip

    def forward(self, dense: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Return one score for each row."""
        low = self.below(dense)
        rows = [low, *(table(chosen[:, i]) for i, table in enumerate(self.tables))]
        each = torch.stack(rows, 1)
        crossed = (each @ each.transpose(1, 2)).flatten(1)
        return self.above(torch.cat([low, crossed], 1))


def _recommender(batch: int) -> Callable[[], Built]:
    def build() -> Built:
        return Recommender(), (torch.randn(batch, 13), torch.randint(0, 100_000, (batch, 26)))

    return build


BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
              "intermediate_size": 4096}  # fmt: skip
LLAMA = {"hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32_000}  # fmt: skip
NETWORKS: dict[str, Callable[[], Built]] = {
    "resnet50-b1": _vision("resnet50", 1),
    "resnet50-b32": _vision("resnet50", 32),
    "vgg16-b16": _vision("vgg16", 16),
    "mobilenet-v3-large-b32": _vision("mobilenet_v3_large", 32),
    "densenet121-b16": _vision("densenet121", 16),
    "convnext-tiny-b16": _vision("convnext_tiny", 16),
    "swin-t-b16": _vision("swin_t", 16),
    "vit-b-16-b16": _vision("vit_b_16", 16),
    "bert-base-b8-s128": _language("BertModel", 8, 128),
    "bert-large-b8-s512": _language("BertModel", 8, 512, **BERT_LARGE),
    "gpt2-b4-s512": _language("GPT2LMHeadModel", 4, 512),
    "gpt2-b1-s64": _language("GPT2LMHeadModel", 1, 64),
    "llama-8-layers-b1-s512": _language("LlamaForCausalLM", 1, 512, **LLAMA),
    "whisper-base-encoder-b4": _whisper(4),
    "dlrm-b2048": _recommender(2048),
}
"""Builders by name; attention in pieces."""
