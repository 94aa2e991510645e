"""`CompactAst`: leaf vectors and where the leaves lie in the tree (CDMPP, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int, Int64

from go_rl.costs.programs.features.layout import LEAF_NUMBERS
from go_rl.costs.programs.features.leaf_vectors import leaf_vectors
from go_rl.costs.programs.nests import LoopNest, NestError

THETA = 10_000.0
"""How fast the frequencies of the positional encoding fall."""


@dataclass(frozen=True, eq=False)
class CompactAst:
    """A program of ``L`` leaves."""

    vectors: Float32[np.ndarray, "L numbers"]
    """[L, 164] leaf vectors (`go_rl.costs.programs.features.FEATURE_NAMES`)."""
    ordering: Int64[np.ndarray, "L"]
    """[L] position of each leaf in the pre-order serialisation in which each leaf is followed by
    -1; leaves without a vector have positions too."""

    @property
    def num_leaves(self) -> int:
        """``L``."""
        return len(self.ordering)


def compact_ast(nest: LoopNest) -> CompactAst:
    """Return the compact AST of a nest, its leaves in pre-order.

    Raises:
        NestError: each statement writes a constant.
    """
    vectors, leaves = leaf_vectors(nest)
    if not leaves:
        raise NestError("each statement of the loop nest writes a constant: it computes nothing")
    ordering = np.array([leaf.node + leaf.leaf for leaf in leaves], np.int64)
    rank = np.argsort(ordering)
    return CompactAst(vectors[rank].astype(np.float32), ordering[rank])


def positional_encoding(
    ordering: Int[np.ndarray, "*L"], numbers: int = LEAF_NUMBERS, theta: float = THETA
) -> Float64[np.ndarray, "*L numbers"]:
    """Return [..., numbers] sin(V / theta^(2d / numbers)) at the places 2d and its cosine at
    2d + 1, V being the ordering (CDMPP, section 4.2).

    The frequencies are the paper's; those of its released code fall twice as fast.
    """
    place = np.arange(numbers)
    angle = np.asarray(ordering)[..., None] / theta ** (2 * (place // 2) / numbers)
    return np.where(place % 2, np.cos(angle), np.sin(angle))
