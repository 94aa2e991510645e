"""Operator vocabulary: names of the sizes of products, convolutions and windows.

A matrix product multiplies (batch, rows, depth) by (batch, depth, columns): ``depth`` is summed. An
image is (batch, height, width, channels); a window of ``kernel_height`` times ``kernel_width`` goes
over it by ``stride``, with ``padding`` zeros on each of its four sides. A convolution makes
``filters`` channels, in ``groups``. Letters of others (NeuSight's B, M, N, K) are converted where
their files are read.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

MATMUL_SIZES = ("batch", "rows", "columns", "depth")
IMAGE_SIZES = ("batch", "height", "width", "channels")
WINDOW_SIZES = ("kernel_height", "kernel_width", "stride")
FLOAT_BYTES = 4
"""Bytes of a float32."""
Sizes = TypeVar("Sizes", int, np.ndarray)


def window_positions(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes) -> Sizes:
    """Return how many positions a window has along one side of an image; below 1: it is larger."""
    return (size + 2 * padding - kernel) // stride + 1


def window_reach(positions: int, kernel: int, stride: int, padding: int) -> int:
    """Return the least side of an image on which a window has so many positions."""
    return (positions - 1) * stride + kernel - 2 * padding
