"""Small networks of PyTorch with random weights, written to ONNX by its exporter: with caches,
attention across two sequences, experts, dilated convolutions, control flow, symbolic sizes."""

# The libraries are no dependencies: see `experiments.plans.stages_equal`.
# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from experiments.readers.foreign_transformers import (
    COMMON,
    HEADS,
    LENGTH,
    WIDTH,
    WORDS,
    transformer,
)
from experiments.readers.torch_networks import NETWORKS as COUNTED

LAYERS, SIDE = 3, 64
SIZES = {**COMMON, "num_hidden_layers": LAYERS, "vocab_size": WORDS}
GROUPED = {**SIZES, "num_key_value_heads": 2}
SPEECH: dict[str, Any] = {
    "d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS, "encoder_ffn_dim": 4 * WIDTH, "decoder_ffn_dim": 4 * WIDTH,
    "vocab_size": WORDS, "max_source_positions": 50, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """A network as the exporter takes it."""

    model: Any
    arguments: tuple[Any, ...]
    dynamic: Any = None
    """Symbolic dimensions, as `torch.export` takes them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``torch.onnx.export``."""


def _image() -> Any:
    import torch

    return torch.randn(2, 3, SIDE, SIDE)


def _words(batch: int = 2, length: int = LENGTH) -> Any:
    import torch

    return torch.randint(1, WORDS, (batch, length))


def _vision(name: str, **settings: Any) -> Exported:
    import torchvision

    found: Any = torchvision.models
    for part in name.split("."):
        found = getattr(found, part)
    return Exported(_plain(found(weights=None, **settings)), (_image(),))


def _plain(model: Any, *names: str) -> Any:
    """A model that takes tensors and gives tensors: those of dictionaries and of objects."""
    import torch

    class Plain(torch.nn.Module):
        """The model, its inputs by place, or by name where these are given."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            named = dict(zip(names, given, strict=True)) if names else {}
            found = self.model(**named) if names else self.model(*given)
            if not isinstance(found, dict):
                return found
            kept = (each for each in found.values() if isinstance(each, torch.Tensor))
            return tuple(kept)

    return Plain()


def _language(family: str, head: str, *arguments: Any, **settings: Any) -> Exported:
    """A model of transformers, of the inputs by name that the arguments are: pairs."""
    model = transformer(family, head, **settings)
    names, tensors = zip(*((name, make()) for name, make in arguments), strict=True)
    return Exported(_plain(model, *names), tensors)


def _with_cache(family: str, **settings: Any) -> Exported:
    """A language model that reads and extends its keys and values, a token a run."""
    import torch
    from transformers.cache_utils import DynamicCache

    head = "LMHeadModel" if family == "GPT2" else "ForCausalLM"

    class Cached(torch.nn.Module):
        """Tokens, then keys and values of each layer."""

        def __init__(self) -> None:
            super().__init__()
            self.model = transformer(family, head, **settings)

        def forward(self, words: Any, *past: Any) -> Any:
            cache = DynamicCache(zip(past[::2], past[1::2], strict=True))
            found = self.model(input_ids=words, past_key_values=cache, use_cache=True)
            layers = found.past_key_values.layers
            return found.logits, *(part for each in layers for part in (each.keys, each.values))

    groups = settings.get("num_key_value_heads", HEADS)
    past = [torch.randn(2, groups, LENGTH, WIDTH // HEADS) for _ in range(2 * LAYERS)]
    return Exported(Cached(), (_words(2, 1), *past))


def _symbolic_bert() -> Exported:
    import torch

    made = _language("Bert", "Model", ("input_ids", _words), **SIZES)
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", max=64)
    return Exported(made.model, made.arguments, (({0: batch, 1: length},),))


def _experts() -> Exported:
    """A mixture of experts, each token by the two that its gate likes best."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        """Gate and four experts."""

        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(WIDTH, 4)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, WIDTH))
                for _ in range(4)
            )

        def forward(self, x: Any) -> Any:
            shares, chosen = torch.topk(self.gate(x).softmax(-1), 2)
            weights = torch.zeros_like(self.gate(x)).scatter(-1, chosen, shares)
            made = torch.stack([expert(x) for expert in self.experts], -1)
            return x + (made * weights.unsqueeze(-2)).sum(-1)

    return Exported(nn.Sequential(*(Layer() for _ in range(3))), (torch.randn(2, LENGTH, WIDTH),))


def _recurrent(kind: str) -> Exported:
    import torch

    from experiments.readers.torch_modules import Tagger

    model = Tagger(kind, WORDS, WIDTH, WIDTH, tags=10)
    return Exported(model, (torch.randint(0, WORDS, (2, LENGTH)),))


def _condition() -> Exported:
    """Two branches, each with weights of its own, chosen by what is computed."""
    import torch
    from torch import nn

    class Chosen(nn.Module):
        """A product, then one of two ways on."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.one, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            y = torch.cond(
                y.sum() > 0, lambda v: torch.relu(self.one(v)), lambda v: self.other(v).tanh(), (y,)
            )
            return self.last(y)

    return Exported(Chosen(), (torch.randn(4, WIDTH),))


def _counted(name: str) -> Exported:
    model, arguments = COUNTED[name].make()
    return Exported(model, arguments, options={"optimize": COUNTED[name].optimise})


IDS, DECODER = ("input_ids", _words), ("decoder_input_ids", _words)


def _sound(*shape: int) -> Callable[[], Any]:
    import torch

    return lambda: torch.randn(*shape)


def _whisper(part: str) -> Exported:
    given = [("input_features", _sound(2, 80, 100)), DECODER]
    if part == "encoder":
        model = transformer("Whisper", **SPEECH).encoder
        return Exported(_plain(model, "input_features"), (given[0][1](),))
    return _language("Whisper", "ForConditionalGeneration", *given, **SPEECH)


def _clip() -> Exported:
    vision = {key: size for key, size in PICTURE.items() if key != "vocab_size"}
    return _language(
        "CLIP", "Model", IDS, ("pixel_values", _image), text_config=SIZES, vision_config=vision,
        projection_dim=WIDTH,
    )  # fmt: skip


T5 = {"vocab_size": WORDS, "d_model": WIDTH, "d_kv": 16, "d_ff": 4 * WIDTH, "num_layers": 2,
      "num_heads": HEADS, "use_cache": False}  # fmt: skip
PICTURE = {**SIZES, "image_size": SIDE, "patch_size": 16}
LIBRARIES: list[Any] = []
"""Keeps the names of operators known."""
UNLOADED = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
"""Types of the operators without which torchvision cannot be imported."""
NETWORKS: dict[str, Callable[[], Exported]] = {
    "torchvision efficientnet-b0": partial(_vision, "efficientnet_b0"),
    "torchvision regnet-y-400mf": partial(_vision, "regnet_y_400mf"),
    "torchvision mnasnet": partial(_vision, "mnasnet0_5"),
    "torchvision deeplab-v3": partial(
        _vision, "segmentation.deeplabv3_mobilenet_v3_large", weights_backbone=None
    ),
    "torchvision fcn": partial(_vision, "segmentation.fcn_resnet50", weights_backbone=None),
    "torchvision mobilenet-v3-small": partial(_vision, "mobilenet_v3_small"),
    "torchvision googlenet": partial(_vision, "googlenet", init_weights=False, aux_logits=False),
    "unet": partial(_counted, "unet"),
    "lstm": partial(_counted, "lstm"),
    "bidirectional lstm": partial(_recurrent, "LSTM"),
    "bidirectional gru": partial(_recurrent, "GRU"),
    "llama-block with cache": partial(_counted, "llama_block"),
    "llama with cache": partial(_with_cache, "Llama", **GROUPED),
    "gpt2 with cache": partial(
        _with_cache, "GPT2", vocab_size=WORDS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS
    ),
    "mistral": lambda: _language("Mistral", "ForCausalLM", IDS, use_cache=False, **GROUPED),
    "qwen2 with cache": partial(_with_cache, "Qwen2", **GROUPED),
    "mixture of experts": _experts,
    "t5": lambda: _language("T5", "ForConditionalGeneration", IDS, DECODER, **T5),
    "whisper encoder": partial(_whisper, "encoder"),
    "whisper encoder and decoder": partial(_whisper, "both"),
    "bert, symbolic batch and length": _symbolic_bert,
    "distilbert": lambda: _language(
        "DistilBert", "Model", IDS, dim=WIDTH, n_layers=3, n_heads=HEADS, hidden_dim=4 * WIDTH,
        vocab_size=WORDS,
    ),
    "vit": lambda: _language("ViT", "Model", ("pixel_values", _image), **PICTURE),
    "clip": _clip,
    "segformer": lambda: _language("Segformer", "Model", ("pixel_values", _image)),
    "wav2vec2": lambda: _language(
        "Wav2Vec2", "Model", ("input_values", _sound(1, 4000)), **SIZES,
        conv_dim=(32,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
    ),
    "condition of torch.cond": _condition,
}  # fmt: skip
"""Builders by name."""


def _name_operators() -> None:
    """Name the operators of a torchvision that is built for CUDA, whose library does not load
    beside a torch for processors; no network here has them."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(name + UNLOADED)
        LIBRARIES.append(library)


def write_exported(name: str, path: Path) -> None:
    """Write a network, its weights in the file."""
    import torch

    if not LIBRARIES:
        _name_operators()
    torch.manual_seed(0)
    made = NETWORKS[name]()
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            made.model.eval(), made.arguments, path, dynamo=True, external_data=False,
            verbose=False, dynamic_shapes=made.dynamic, **made.options,
        )  # fmt: skip
