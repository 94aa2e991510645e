"""`CompactAst`: leaf vectors and where the leaves lie in the tree (CDMPP, section 4); `PackedAsts`:
those of many programs, their leaves one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int, Int64

from go_rl.costs.programs.features.layout import LEAF_NUMBERS
from go_rl.costs.programs.features.leaf_vectors import leaf_vectors
from go_rl.costs.programs.nests import LoopNest, NestError

THETA = 10_000.0
"""Base of the frequencies of the positional encoding."""


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
        """Number of leaves ``L``."""
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
    ordering: Int[np.ndarray, "*L"], numbers: int = LEAF_NUMBERS
) -> Float64[np.ndarray, "*L numbers"]:
    """Return [..., numbers] sin(V / `THETA`^(2d / numbers)) at the places 2d and its cosine at
    2d + 1, V being the ordering (CDMPP, section 4.2).

    The frequencies are the paper's; those of its released code fall twice as fast.
    """
    place = np.arange(numbers)
    angle = np.asarray(ordering)[..., None] / THETA ** (2 * (place // 2) / numbers)
    return np.where(place % 2, np.cos(angle), np.sin(angle))


@dataclass(frozen=True, eq=False)
class PackedAsts:
    """``N`` programs with ``S`` leaves in all."""

    vectors: Float32[np.ndarray, "S numbers"]
    """[S, 164] leaf vectors (`go_rl.costs.programs.features.FEATURE_NAMES`), program by program."""
    ordering: Int64[np.ndarray, "S"]
    """[S] `CompactAst.ordering`."""
    first_leaf: Int64[np.ndarray, "starts"]
    """[N + 1] number of the first leaf of each program; last, ``S``."""

    @property
    def num_programs(self) -> int:
        """Number of programs ``N``."""
        return len(self.first_leaf) - 1

    @property
    def leaves(self) -> Int64[np.ndarray, "N"]:
        """[N] leaves of each program."""
        return np.diff(self.first_leaf)

    def take(self, which: Int[np.ndarray, "J"]) -> PackedAsts:
        """Return some programs, in this order; one may be there several times."""
        leaves = self.leaves[which]
        first = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
        rows = np.repeat(self.first_leaf[which] - first[:-1], leaves) + np.arange(first[-1])
        return PackedAsts(self.vectors[rows], self.ordering[rows], first)

    def sums(self) -> Float32[np.ndarray, "N numbers"]:
        """Return [N, 164] the sum of the leaf vectors of each program."""
        if not self.num_programs:
            return np.zeros((0, self.vectors.shape[1]), np.float32)
        return np.add.reduceat(self.vectors, self.first_leaf[:-1], axis=0)


def pack_asts(asts: Sequence[CompactAst]) -> PackedAsts:
    """Return compact ASTs, packed in their order."""
    first = np.cumsum([0, *(each.num_leaves for each in asts)]).astype(np.int64)
    empty = np.zeros((0, LEAF_NUMBERS), np.float32)
    return PackedAsts(
        np.concatenate([empty, *(each.vectors for each in asts)]).astype(np.float32),
        np.concatenate([np.zeros(0, np.int64), *(each.ordering for each in asts)]),
        first,
    )


def join_asts(parts: Sequence[PackedAsts]) -> PackedAsts:
    """Return the programs of several packs, one pack after the other; at least one."""
    leaves = np.concatenate([part.leaves for part in parts])
    return PackedAsts(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.ordering for part in parts]),
        np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64),
    )
