"""Networks that are measured on a GPU and exported here: torchvision's and transformers' own, with
random weights. Needs torch, torchvision and transformers only, not go_rl."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


def _vision(name: str, batch: int) -> Built:
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    return model, (torch.randn(batch, 3, 224, 224),)


def _language(name: str, batch: int, length: int, attention: str = "eager", **config: Any) -> Built:
    """A model of transformers by its class, with the sizes of a published one."""
    import transformers

    model_class = getattr(transformers, name)
    options: dict[str, Any] = {"use_cache": False} if "GPT2" in name or "Llama" in name else {}
    settings = model_class.config_class(**config, attn_implementation=attention)
    model = FirstOutput(model_class(settings), "input_ids", **options)
    return model, (torch.randint(0, 1000, (batch, length)),)


def _whisper(batch: int) -> Built:
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = transformers.WhisperConfig(
        d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048,
        attn_implementation="eager",
    )  # fmt: skip
    model = FirstOutput(WhisperEncoder(config), "input_features")
    return model, (torch.randn(batch, 80, 3000),)


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


def _recommender(batch: int) -> Built:
    return Recommender(), (torch.randn(batch, 13), torch.randint(0, 100_000, (batch, 26)))


class DecoderLayer(torch.nn.Module):
    """Layer of Llama for one token, whose keys and values are concatenated to those before."""

    def __init__(
        self, width: int, heads: int, kept: int, inner: int, past: int, batch: int
    ) -> None:
        super().__init__()
        nn, self.depth = torch.nn, width // heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, kept * self.depth, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(batch, kept, past, self.depth))
        for name in ("cos", "sin"):
            self.register_buffer(name, torch.randn(self.depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return [batch, 1, width]."""
        near = self.norms[0](x)
        query, key, value = (
            each(near).unflatten(-1, (-1, self.depth)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        keys = torch.cat([self.keys, self._turned(key)], 2)
        values = torch.cat([self.values, value], 2)
        seen = torch.nn.functional.scaled_dot_product_attention(
            self._turned(query), keys, values, enable_gqa=True
        )
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        near = self.norms[1](x)
        return x + self.down(torch.nn.functional.silu(self.gate(near)) * self.up(near))

    def _turned(self, x: torch.Tensor) -> torch.Tensor:
        """Rotary position."""
        one, two = x.chunk(2, -1)
        return x * self.cos + torch.cat([-two, one], -1) * self.sin


class Decoder(torch.nn.Module):
    """Llama of eight layers that decodes one token."""

    def __init__(self, batch: int, past: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(32_000, 2048)
        self.layers = torch.nn.Sequential(
            *(DecoderLayer(2048, 32, 8, 8192, past, batch) for _ in range(8))
        )
        self.norm = torch.nn.RMSNorm(2048)
        self.head = torch.nn.Linear(2048, 32_000, bias=False)

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        """Return logits [batch, 1, vocabulary]."""
        return self.head(self.norm(self.layers(self.embedding(token))))


def _decoder(batch: int, past: int) -> Built:
    return Decoder(batch, past), (torch.randint(0, 32_000, (batch, 1)),)


BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
              "intermediate_size": 4096}  # fmt: skip
LLAMA = {"hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32_000}  # fmt: skip
NETWORKS: dict[str, Callable[[], Built]] = {
    "resnet50-b1": partial(_vision, "resnet50", 1),
    "resnet50-b32": partial(_vision, "resnet50", 32),
    "vgg16-b16": partial(_vision, "vgg16", 16),
    "mobilenet-v3-large-b32": partial(_vision, "mobilenet_v3_large", 32),
    "densenet121-b16": partial(_vision, "densenet121", 16),
    "convnext-tiny-b16": partial(_vision, "convnext_tiny", 16),
    "swin-t-b16": partial(_vision, "swin_t", 16),
    "vit-b-16-b16": partial(_vision, "vit_b_16", 16),
    "bert-base-b8-s128": partial(_language, "BertModel", 8, 128),
    "bert-large-b8-s512": partial(_language, "BertModel", 8, 512, **BERT_LARGE),
    "gpt2-b4-s512": partial(_language, "GPT2LMHeadModel", 4, 512),
    "gpt2-b1-s64": partial(_language, "GPT2LMHeadModel", 1, 64),
    "llama-8-layers-b1-s512": partial(_language, "LlamaForCausalLM", 1, 512, **LLAMA),
    "whisper-base-encoder-b4": partial(_whisper, 4),
    "dlrm-b2048": partial(_recommender, 2048),
}
"""Builders by name; attention in pieces."""
FUSED: dict[str, Callable[[], Built]] = {
    "bert-large-b8-s512-fused": partial(_language, "BertModel", 8, 512, "sdpa", **BERT_LARGE),
    "gpt2-b4-s512-fused": partial(_language, "GPT2LMHeadModel", 4, 512, "sdpa"),
    "llama-8-layers-b1-s512-fused": partial(_language, "LlamaForCausalLM", 1, 512, "sdpa", **LLAMA),
    "llama-decoding-b1-past512": partial(_decoder, 1, 512),
    "llama-decoding-b32-past1024": partial(_decoder, 32, 1024),
    "llama-decoding-b8-past8192": partial(_decoder, 8, 8192),
}
"""Builders with fused attention, the last three of one token with a cache."""
