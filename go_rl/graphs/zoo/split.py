"""Split of the zoo's graphs: those trained on, those that choose the checkpoint, and those never
seen before the test.

Families are kept whole: no family of the validation or test graphs has a member in training.
"""

from __future__ import annotations

from typing import Literal, get_args

Split = Literal["train", "validation", "test", "extra", "training-form"]
SPLITS: tuple[str, ...] = get_args(Split)
"""Splits. train, validation, test: inference graphs for the policy; extra: further members of the
held-out families, and graphs beyond the usual size; training-form: one training step."""

VALIDATION_FAMILIES = ("densenet", "mixer", "moe", "ssd", "wavernn")
TEST_FAMILIES = ("bert", "convdraw", "dlrm", "gnmt", "inception", "nasnet", "t5", "unet")
FURTHER_TEST_FAMILIES, FURTHER_VALIDATION_FAMILIES = ("multi-tower", "randwire"), ("bifpn",)
"""Families of the split ``extra`` alone, held out of training like those above; problems of the
named list (`go_rl.graphs.zoo.problems`) are made of them."""
HELD_OUT = (
    *VALIDATION_FAMILIES, *TEST_FAMILIES, *FURTHER_TEST_FAMILIES, *FURTHER_VALIDATION_FAMILIES,
)  # fmt: skip

VALIDATION = ("densenet121", "mixer-s16", "moe-8-experts", "ssd-mobilenet", "wavernn-224")
TEST = (
    "bert-base", "bert-large", "bert-medium", "convdraw", "convdraw-long", "dlrm-kaggle",
    "dlrm-rm2", "gnmt-2-layers", "gnmt-8-layers", "inception-resnet-v2", "inception-v3",
    "nasnet-large", "nasnet-mobile", "t5-small", "unet", "unet-deep",
)  # fmt: skip
EXTRA = (
    "conformer-l", "convnext-tiny-b8", "efficientnet-b5", "fractalnet-4", "fractalnet-6",
    "gin-5-layers", "gpt2-small-b8", "gpt3-xl", "grid-lstm-1-layer", "grid-lstm-2-layers",
    "hrnet-w18", "hrnet-w32-small", "mobilenet-v2-b16", "opt-1.3b", "resnet101", "resnet152-v2",
    "resnet18-b32", "transformer-big", "vae-6-layers", "vit-base-r384", "xception-b8",
)  # fmt: skip
"""Graphs of training families that are left out of training all the same: mostly the twin of
another one at another batch or width, and those that only the named problems train on."""
TRAINED = (
    "amoebanet-d-3-128", "conformer-s", "convnext-tiny", "deep-autoencoder", "deep-cross",
    "deepspeech2", "efficientnet-b0", "gat-3-layers", "gcn-16-layers", "gpt-6-layers",
    "gpt2-small", "graph-simulator-10", "message-passing-4", "mobilenet-v2", "neural-ode-8",
    "resnet18", "resnet50-b8", "seq2seq-2-layers", "seq2seq-4-layers", "swin-tiny",
    "transformer-base", "vgg16", "vit-base", "vit-small-b8", "wav2vec2-base", "whisper-tiny",
    "wide-and-deep", "xception",
)  # fmt: skip
"""Networks of the split ``train`` that are frozen as training iterations as well."""


def split_of(name: str, family: str, training: bool) -> Split:
    """Return the part of the split that a zoo graph belongs to."""
    if training:
        return "training-form"
    if name in VALIDATION:
        return "validation"
    if name in TEST:
        return "test"
    return "extra" if family in HELD_OUT or name in EXTRA else "train"
