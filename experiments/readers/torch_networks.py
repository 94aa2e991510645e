"""Twelve networks of PyTorch.

The modules of ``transformers`` have random weights; the others are in `torch_modules`.
"""

# The libraries are no dependencies: see `torch_readings.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LENGTH = 64
"""Tokens of a sequence."""
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "image": ((1, 3, 224, 224),),
    "spectrogram": ((1, 80, 3000),),
    "words": ((1, LENGTH),),
    "two sequences": ((1, LENGTH), (1, LENGTH), (1, LENGTH)),
}
"""Shapes of the inputs of ``transformers``; sequences hold whole numbers."""


@dataclass(frozen=True)
class Network:
    """One network."""

    module: str
    """Class in ``transformers``, or name in `torch_modules`."""
    inputs: str
    """Row of `SHAPES`; empty for what comes with its inputs."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments of the configuration; the others have the defaults of the library."""
    optimise: bool = False
    """Whether the exporter's ONNX is optimised, which folds the order of an LSTM's gates, but also
    normalisations, into weights."""

    def make(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the module in evaluation mode, with random parameters, and its arguments."""
        import torch

        torch.manual_seed(0)
        model, arguments = self._made()
        with torch.no_grad():
            for parameter in model.parameters():  # equal arrays would be stored as one
                parameter.normal_(0.0, 0.02)
        return model.eval(), arguments

    def _made(self) -> tuple[Any, tuple[Any, ...]]:
        if not self.inputs:
            from experiments.readers import torch_modules

            return torch_modules.NETWORKS[self.module]()
        import torch
        import transformers
        from transformers.integrations.executorch import sdpa_mask_without_vmap
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        # A mask that `vmap` makes cannot be saved.
        ALL_MASK_ATTENTION_FUNCTIONS.register("plain", sdpa_mask_without_vmap)
        ALL_ATTENTION_FUNCTIONS.register("plain", ALL_ATTENTION_FUNCTIONS["sdpa"])
        family, _, head = self.module.partition(".")
        configuration = getattr(transformers, f"{family}Config")(**self.settings)
        model = getattr(transformers, f"{family}{head}")(configuration)
        if family in ("Bert", "GPT2"):
            model.config._attn_implementation = "plain"
        words = "word" in self.inputs or "sequences" in self.inputs
        kind = torch.long if words else torch.float32
        arguments = tuple(torch.ones(shape, dtype=kind) for shape in SHAPES[self.inputs])
        return model.encoder if family == "Whisper" else model, arguments


WHISPER = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6,
           "encoder_ffn_dim": 1536}  # fmt: skip
"""Sizes of Whisper tiny."""
NETWORKS: dict[str, Network] = {
    "resnet50": Network("ResNet.Model", "image"),
    "vit_b": Network("ViT.Model", "image"),
    "bert_base": Network("Bert.Model", "words"),
    "gpt2": Network("GPT2.LMHeadModel", "words", {"use_cache": False}),
    "llama_block": Network("llama_block_with_cache", ""),
    "t5_small": Network("T5.Model", "two sequences", {"use_cache": False}),
    "unet": Network("unet", ""),
    "lstm": Network("lstm", "", optimise=True),
    "swin_tiny": Network("Swin.Model", "image"),
    "mobilenet_v3": Network("mobilenet_v3", ""),
    "whisper_tiny_encoder": Network("Whisper.Model", "spectrogram", WHISPER),
    "dlrm": Network("dlrm", ""),
}
"""The networks by name."""
