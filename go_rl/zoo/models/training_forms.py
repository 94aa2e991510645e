"""Training steps of inference networks: what step policies learn from beside GO's own families."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from go_rl.zoo.models.building import Built, training
from go_rl.zoo.models.zoo_model import ZooModel

TRAINED = (
    "amoebanet-d-3-128", "conformer-s", "convnext-tiny", "deep-autoencoder", "deep-cross",
    "deepspeech2", "efficientnet-b0", "gat-3-layers", "gcn-16-layers", "gpt-6-layers",
    "gpt2-small", "graph-simulator-10", "message-passing-4", "mobilenet-v2", "neural-ode-8",
    "resnet18", "resnet50-b8", "seq2seq-2-layers", "seq2seq-4-layers", "swin-tiny",
    "transformer-base", "vgg16", "vit-base", "vit-small-b8", "wav2vec2-base", "whisper-tiny",
    "wide-and-deep", "xception",
)  # fmt: skip
"""Networks of the split ``train`` that are frozen as training steps as well."""


def training_forms(models: Sequence[ZooModel]) -> tuple[ZooModel, ...]:
    """Return the training steps of `TRAINED`, named ``NAME-training``."""
    by_name = {model.name: model for model in models}
    return tuple(
        ZooModel(f"{name}-training", by_name[name].family, partial(_step, by_name[name]), True)
        for name in TRAINED
    )


def _step(model: ZooModel) -> Built:
    return training(model.build())
