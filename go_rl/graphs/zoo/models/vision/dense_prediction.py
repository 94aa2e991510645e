"""Networks whose output is a map or a set of boxes: U-Net and SSD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax.numpy as jnp

from go_rl.graphs.zoo.models.vision.networks import batch_norm


class DoubleConvolution(nn.Module):
    """Two 3 × 3 convolutions, each with batch normalisation and ReLU."""

    features: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.relu(batch_norm(nn.Conv(self.features, (3, 3), use_bias=False)(x)))
        return x


class ResidualConvolution(nn.Module):
    """Pre-activation residual block with group normalisation."""

    features: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(8)(x)))
        y = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(8)(y)))
        if x.shape[-1] != self.features:
            x = nn.Conv(self.features, (1, 1))(x)
        return x + y


class UNet(nn.Module):
    """U-Net (Ronneberger et al. 2015) with padded convolutions.

    ``residual`` blocks, several to a level, make it the deep form used for restoration and
    diffusion (without the time embedding, which would feed every block).
    """

    widths: Sequence[int] = (64, 128, 256, 512, 1024)
    blocks: int = 1
    residual: bool = False
    classes: int = 2

    @nn.compact
    def __call__(self, x: Any) -> Any:
        skips = []
        if self.residual:
            x = nn.Conv(self.widths[0], (3, 3))(x)
        for width in self.widths[:-1]:
            skips.append(x := self._level(x, width))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = self._level(x, self.widths[-1])
        for width, skip in zip(reversed(self.widths[:-1]), reversed(skips), strict=True):
            x = nn.ConvTranspose(width, (2, 2), (2, 2))(x)
            x = self._level(jnp.concatenate([skip, x], axis=-1), width)
        return nn.Conv(self.classes, (1, 1))(x)

    def _level(self, x: Any, width: int) -> Any:
        block = ResidualConvolution if self.residual else DoubleConvolution
        for _ in range(self.blocks):
            x = block(width)(x)
        return x


class VGGBackbone(nn.Module):
    """VGG-16 up to the maps that SSD300 reads (Liu et al. 2016, figure 2)."""

    @nn.compact
    def __call__(self, x: Any) -> list[Any]:
        maps = []
        for i, (features, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
            for _ in range(layers):
                x = nn.relu(nn.Conv(features, (3, 3))(x))
            if i == 3:
                scale = self.param("scale", nn.initializers.ones, (512,))
                norm = jnp.sqrt(jnp.square(x).sum(-1, keepdims=True) + 1e-10)
                maps.append(x / norm * scale)
            if i < 4:
                x = nn.max_pool(x, (2, 2), (2, 2), padding="SAME")
        x = nn.max_pool(x, (3, 3), padding="SAME")
        x = nn.relu(nn.Conv(1024, (3, 3), kernel_dilation=(6, 6))(x))
        maps.append(nn.relu(nn.Conv(1024, (1, 1))(x)))
        return maps


class MobileBackbone(nn.Module):
    """MobileNet v2 (Sandler et al. 2018, table 2) up to the maps that SSDLite reads."""

    @nn.compact
    def __call__(self, x: Any) -> list[Any]:
        maps = []
        x = nn.relu6(batch_norm(nn.Conv(32, (3, 3), (2, 2), use_bias=False)(x)))
        stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                  (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
        for expansion, features, layers, stride in stages:
            for layer in range(layers):
                wide = nn.Conv(expansion * x.shape[-1], (1, 1), use_bias=False)(x)
                wide = nn.relu6(batch_norm(wide))
                if features == 160 and layer == 0:
                    maps.append(wide)
                y = separable(wide, features, stride if layer == 0 else 1)
                x = x + y if x.shape == y.shape else y
        maps.append(nn.relu6(batch_norm(nn.Conv(1280, (1, 1), use_bias=False)(x))))
        return maps


def separable(x: Any, features: int, stride: int = 1) -> Any:
    """Depthwise 3 × 3 and pointwise convolution, each batch-normalised; inside `nn.compact`."""
    wide, strides = x.shape[-1], (stride, stride)
    y = nn.Conv(wide, (3, 3), strides, feature_group_count=wide, use_bias=False)(x)
    y = nn.relu6(batch_norm(y))
    return batch_norm(nn.Conv(features, (1, 1), use_bias=False)(y))


class SSD(nn.Module):
    """Single-shot detector (Liu et al. 2016): box offsets and class scores from six maps.

    ``lite`` is SSDLite (Sandler et al. 2018, section 6.2): separable convolutions in extra layers
    and heads, MobileNet v2 as the backbone. At 300 pixels: 8,732 boxes, lite 1,917.
    """

    lite: bool = False
    classes: int = 21

    @nn.compact
    def __call__(self, x: Any) -> tuple[Any, Any]:
        maps = (MobileBackbone() if self.lite else VGGBackbone())(x)
        last = (2, "SAME") if self.lite else (1, "VALID")
        for features, (stride, padding) in zip((512, 256, 256, 256), [(2, "SAME")] * 2 + [last] * 2,
                                               strict=True):  # fmt: skip
            maps.append(self._extra(maps[-1], features, stride, padding))
        boxes, scores = [], []
        anchors = (3, 6, 6, 6, 6, 6) if self.lite else (4, 6, 6, 6, 4, 4)
        for x, count in zip(maps, anchors, strict=True):
            boxes.append(self._head(x, 4 * count).reshape(x.shape[0], -1, 4))
            scores.append(self._head(x, self.classes * count).reshape(x.shape[0], -1, self.classes))
        return jnp.concatenate(boxes, 1), nn.softmax(jnp.concatenate(scores, 1))

    def _extra(self, x: Any, features: int, stride: int, padding: str) -> Any:
        x = nn.Conv(features // 2, (1, 1))(x)
        if self.lite:
            return nn.relu6(separable(nn.relu6(batch_norm(x)), features, stride))
        strides = (stride, stride)
        return nn.relu(nn.Conv(features, (3, 3), strides, padding=padding)(nn.relu(x)))

    def _head(self, x: Any, features: int) -> Any:
        if not self.lite:
            return nn.Conv(features, (3, 3))(x)
        wide = x.shape[-1]
        x = nn.Conv(wide, (3, 3), feature_group_count=wide, use_bias=False)(x)
        return nn.Conv(features, (1, 1))(nn.relu6(batch_norm(x)))
