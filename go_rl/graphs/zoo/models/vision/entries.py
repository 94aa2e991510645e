"""The zoo's vision networks written in flax; Keras applications are beside this file."""

from __future__ import annotations

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.models.building import (
    Built,
    ZooModel,
    classifier_training,
    flax_entry,
    floats,
    key,
)
from go_rl.graphs.zoo.models.vision.amoebanet import AmoebaNetD
from go_rl.graphs.zoo.models.vision.convdraw import ConvDRAW
from go_rl.graphs.zoo.models.vision.dense_prediction import SSD, UNet
from go_rl.graphs.zoo.models.vision.networks import ResNet
from go_rl.graphs.zoo.models.vision.vision_transformers import MLPMixer, Swin, VisionTransformer
from go_rl.graphs.zoo.models.vision.wired import BiFPN, FractalNet, HRNet, RandWire


def _entry(name: str, family: str, module: nn.Module, size: int = 224, batch: int = 1) -> ZooModel:
    return flax_entry(name, family, module, floats(batch, size, size, 3))


def _classifier_training(module: nn.Module, size: int, batch: int) -> Built:
    """One step of gradient descent on the cross-entropy."""
    images = floats(batch, size, size, 3)
    variables = jax.eval_shape(module.init, key(), images)

    def loss(params: Any, statistics: Any, images: Any, labels: Any) -> Any:
        held = {"params": params, "batch_stats": statistics}
        logits, updated = module.apply(held, images, mutable=["batch_stats"])
        shares = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(shares, labels[:, None], axis=1, mode="clip")
        return -chosen.mean(), updated["batch_stats"]

    return classifier_training(loss, (variables["params"], variables["batch_stats"]), images)


ENTRIES: tuple[ZooModel, ...] = (
    _entry("resnet18", "resnet", ResNet()),
    _entry("resnet18-b32", "resnet", ResNet(), 160, 32),
    _entry("resnet34", "resnet", ResNet((3, 4, 6, 3))),
    _entry("amoebanet-d-3-128", "amoebanet", AmoebaNetD(3, 128)),
    _entry("amoebanet-d-6-192", "amoebanet", AmoebaNetD(6, 192)),
    _entry("amoebanet-d-18-256", "amoebanet", AmoebaNetD(18, 256)),
    _entry("amoebanet-d-36-160-b4", "amoebanet", AmoebaNetD(36, 160), 224, 4),
    _entry("unet", "unet", UNet((32, 64, 128, 256, 512)), 256),
    _entry("unet-wide", "unet", UNet(), 128),
    _entry("unet-deep", "unet", UNet((32, 64, 128, 256, 256), 3, residual=True, classes=3), 128),
    _entry("ssd-vgg16", "ssd", SSD(), 300),
    _entry("ssd-mobilenet", "ssd", SSD(lite=True), 300),
    _entry("vit-tiny", "vit", VisionTransformer(12, 192, 3)),
    _entry("vit-small-b8", "vit", VisionTransformer(12, 384, 6), 224, 8),
    _entry("vit-base", "vit", VisionTransformer()),
    _entry("vit-base-r384", "vit", VisionTransformer(), 384, 1),
    _entry("vit-large", "vit", VisionTransformer(24, 1024, 16)),
    _entry("swin-tiny", "swin", Swin()),
    _entry("swin-base-b4", "swin", Swin((2, 2, 18, 2), 128), 224, 4),
    _entry("mixer-s16", "mixer", MLPMixer()),
    _entry("mixer-b16-b8", "mixer", MLPMixer(12, 768, 16, 384, 3072), 224, 8),
    _entry("convdraw", "convdraw", ConvDRAW(8), 32, 4),
    _entry("convdraw-long", "convdraw", ConvDRAW(32), 64),
    _entry("convdraw-wide", "convdraw", ConvDRAW(16, 320, 24), 64, 2),
    _entry("randwire-32", "randwire", RandWire()),
    _entry("randwire-32-wide", "randwire", RandWire(109, seed=2)),
    _entry("randwire-64", "randwire", RandWire(78, 64, seed=3, stages=3)),
    _entry("randwire-128", "randwire", RandWire(52, 128, seed=4, stages=3), 160, 4),
    _entry("fractalnet-4", "fractalnet", FractalNet(), 64, 4),
    _entry("fractalnet-6", "fractalnet", FractalNet(6, (64, 128, 256)), 64),
    _entry("hrnet-w18", "hrnet", HRNet()),
    _entry("hrnet-w32-small", "hrnet", HRNet(32, (1, 2, 2), 2), 256),
    _entry("bifpn-d0", "bifpn", BiFPN(), 512),
    _entry("bifpn-d3", "bifpn", BiFPN(160, 6), 896),
    ZooModel(
        "amoebanet-d-6-192-training",
        "amoebanet",
        partial(_classifier_training, AmoebaNetD(6, 192, train=True), 224, 2),
        training=True,
    ),
)
