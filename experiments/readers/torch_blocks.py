"""Sizes of the blocks of MobileNet-v3 large (Howard et al., 2019, table 1)."""

from __future__ import annotations

MOBILENET_BLOCKS = (
    (16, 3, 16, 16, 0, "r", 1), (16, 3, 64, 24, 0, "r", 2), (24, 3, 72, 24, 0, "r", 1),
    (24, 5, 72, 40, 1, "r", 2), (40, 5, 120, 40, 1, "r", 1), (40, 5, 120, 40, 1, "r", 1),
    (40, 3, 240, 80, 0, "h", 2), (80, 3, 200, 80, 0, "h", 1), (80, 3, 184, 80, 0, "h", 1),
    (80, 3, 184, 80, 0, "h", 1), (80, 3, 480, 112, 1, "h", 1), (112, 3, 672, 112, 1, "h", 1),
    (112, 5, 672, 160, 1, "h", 2), (160, 5, 960, 160, 1, "h", 1), (160, 5, 960, 160, 1, "h", 1),
)  # fmt: skip
"""Inputs, kernel, width, outputs, squeeze and excitation, activation, stride."""
