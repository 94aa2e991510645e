"""Every network by name; ``unrolled`` asks for loops written out, which is what XLA can count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import flax.linen as nn

from go_rl.zoo.bert import bert_base, bert_base_training
from go_rl.zoo.models.audio.networks import WaveNet, WaveRNN
from go_rl.zoo.models.building import Built, flax_model, floats, integers, key, training
from go_rl.zoo.models.language import sequence
from go_rl.zoo.models.language.transformer_xl import TransformerXL
from go_rl.zoo.models.language.transformers import GPT, T5, MixtureOfExperts
from go_rl.zoo.models.tabular import relational
from go_rl.zoo.models.tabular.recommenders import DLRM
from go_rl.zoo.models.vision import networks as vision


@dataclass(frozen=True)
class CatalogueModel:
    """One network."""

    name: str
    build: Callable[[bool], Built]
    """Takes ``unrolled``: write every loop out."""
    has_loop: bool = False


def _fixed(name: str, build: Callable[[], Built]) -> CatalogueModel:
    return CatalogueModel(name, lambda unrolled: build())


def _recurrent(cell: type[nn.Module], unrolled: bool) -> Built:
    return flax_model(sequence.Recurrent(cell, 12, unrolled), floats(4, 12, 128))


def _image(size: int, batch: int = 1) -> object:
    return floats(batch, size, size, 3)


MODELS: tuple[CatalogueModel, ...] = (
    _fixed("mlp", lambda: flax_model(vision.MLP(), floats(32, 784))),
    _fixed("mlp-training", lambda: training(flax_model(vision.MLP(), floats(32, 784)))),
    _fixed("lenet", lambda: flax_model(vision.LeNet(), floats(8, 28, 28, 1))),
    _fixed("lenet-training", lambda: training(flax_model(vision.LeNet(), floats(8, 28, 28, 1)))),
    _fixed("vgg11", lambda: flax_model(vision.VGG(), _image(224))),
    _fixed("resnet18", lambda: flax_model(vision.ResNet(), _image(224))),
    _fixed(
        "resnet50",
        lambda: flax_model(vision.ResNet((3, 4, 6, 3), vision.Bottleneck), _image(224)),
    ),
    _fixed(
        "resnet18-training",
        lambda: training(flax_model(vision.ResNet(train=True), _image(64, 2))),
    ),
    _fixed("mobilenet", lambda: flax_model(vision.MobileNet(), _image(128))),
    _fixed("mobilenet-training", lambda: training(flax_model(vision.MobileNet(), _image(64, 2)))),
    _fixed("inception", lambda: flax_model(vision.Inception(), floats(1, 28, 28, 192))),
    _fixed("densenet", lambda: flax_model(vision.DenseNet(), _image(64))),
    _fixed("unet", lambda: flax_model(vision.UNet(), _image(64))),
    _fixed("unet-training", lambda: training(flax_model(vision.UNet(), _image(32)))),
    _fixed("dcgan", lambda: flax_model(vision.DCGAN(), floats(4, 100))),
    _fixed("vit", lambda: flax_model(vision.ViT(), _image(224))),
    _fixed("mlp-mixer", lambda: flax_model(vision.Mixer(), _image(224))),
    _fixed("bert-base", bert_base),
    _fixed("bert-base-training", bert_base_training),
    _fixed("gpt", lambda: flax_model(GPT(6, 256, 8, 5000, 64), integers(2, 64))),
    _fixed("gpt-training", lambda: training(flax_model(GPT(6, 256, 8, 5000, 64), integers(2, 64)))),
    _fixed(
        "t5", lambda: flax_model(T5(3, 256, 8, 1024, 32, 4000), integers(2, 48), integers(2, 32))
    ),
    _fixed("wavenet", lambda: flax_model(WaveNet(1, 10), floats(1, 2048, 1))),
    _fixed(
        "transformer-xl",
        lambda: flax_model(TransformerXL(4, 256), integers(2, 32), floats(4, 2, 32, 256)),
    ),
    _fixed("mixture-of-experts", lambda: flax_model(MixtureOfExperts(), floats(128, 256))),
    _fixed("dlrm", lambda: flax_model(DLRM(), floats(64, 13), integers(64, 8, 4))),
    _fixed(
        "graph-network",
        lambda: flax_model(
            relational.GraphNetwork(300), floats(300, 32), integers(2000), integers(2000)
        ),
    ),
    _fixed("vae", lambda: flax_model(relational.VAE(), floats(32, 784), key())),
    _fixed("dropout-mlp", lambda: flax_model(relational.DropoutMLP(), floats(32, 256), key())),
    CatalogueModel("lstm", lambda unrolled: _recurrent(nn.OptimizedLSTMCell, unrolled), True),
    CatalogueModel(
        "lstm-training",
        lambda unrolled: training(_recurrent(nn.OptimizedLSTMCell, unrolled)),
        True,
    ),
    CatalogueModel("gru", lambda unrolled: _recurrent(nn.GRUCell, unrolled), True),
    CatalogueModel(
        "wavernn",
        lambda unrolled: flax_model(WaveRNN(256, unrolled), floats(16, 4, 80)),
        True,
    ),
    CatalogueModel(
        "neural-ode",
        lambda unrolled: flax_model(relational.NeuralODE(8, unrolled), floats(32, 64)),
        True,
    ),
)
