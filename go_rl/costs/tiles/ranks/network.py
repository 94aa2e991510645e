"""The network that ranks configurations of kernels: one embedding of the kernel's graph, and a head
for each kind of candidates, which reads it with a candidate's features.

"The graph embedding network is shared between tile-size and flags models" ("A Learnt Performance
Model for TPUs"). A kernel is embedded once, however many candidates it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.core.ranges import COUNT, NOT_NEGATIVE, check_ranges
from go_rl.costs.kernels.batch import KernelBatch
from go_rl.costs.kernels.network import (
    KernelNetwork,
    KernelNetworkConfig,
    PiecewiseLinear,
    Standardised,
)
from go_rl.costs.tiles.ranks.data import CANDIDATE_KINDS, CandidateKind


@dataclass(frozen=True)
class RankNetworkConfig:
    """Sizes and parts of the network."""

    embedding: KernelNetworkConfig = field(
        default_factory=lambda: KernelNetworkConfig(outputs=16, additive=False)
    )
    """The network that embeds kernels; its outputs are the columns of the embedding."""
    head: int = 128
    """Width of the two layers of the head of a kind."""
    bins: int = 16
    """Bins of each feature of a candidate, see `PiecewiseLinear`; 0: none."""
    flags: int = 0
    """Features of a candidate of flags; 0: the network knows nothing of it."""
    tiles: int = 0
    """Features of a candidate of tiles; 0: the network knows nothing of it."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "ranks", TrainingError, head=COUNT, bins=NOT_NEGATIVE,
            **dict.fromkeys(CANDIDATE_KINDS, NOT_NEGATIVE),
        )  # fmt: skip

    @property
    def kinds(self) -> tuple[CandidateKind, ...]:
        """Kinds of candidates that the network knows."""
        return tuple(kind for kind in CANDIDATE_KINDS if getattr(self, kind))


class RankNetwork(nn.Module):
    """Scores candidates: of two candidates of one kernel, that with the smaller score is faster."""

    config: RankNetworkConfig

    def setup(self) -> None:
        """Make the parts."""
        self.embedding = KernelNetwork(self.config.embedding)
        self.heads = {
            kind: RankHead(self.config.head, self.config.bins) for kind in self.config.kinds
        }

    def __call__(
        self, batch: KernelBatch, candidates: Mapping[str, Float[Array, "B C _"]]
    ) -> dict[str, Float[Array, "B C"]]:
        """Return [B, C] scores of the candidates of each kind, all of the same kernels."""
        kernel = self.embed(batch)
        return {kind: self.score(kind, kernel[:, None], rows) for kind, rows in candidates.items()}

    def embed(self, batch: KernelBatch) -> Float[Array, "B E"]:
        """Return [B, E] an embedding of each kernel."""
        return self.embedding(batch)

    def score(
        self, kind: str, kernel: Float[Array, "*#B E"], candidates: Float[Array, "*B F"]
    ) -> Float[Array, "*B"]:
        """Return the score of each candidate of a kind, given the embedding of its kernel."""
        return self.heads[kind](kernel, candidates)


class RankHead(nn.Module):
    """Head of one kind of candidates."""

    width: int
    bins: int

    @nn.compact
    def __call__(
        self, kernel: Float[Array, "*#B E"], candidates: Float[Array, "*B F"]
    ) -> Float[Array, "*B"]:
        """Return a score for each candidate."""
        seen = Standardised(name="candidate_scale")(candidates)
        if self.bins:
            binned = PiecewiseLinear(self.bins, name="candidate_bins")(candidates)
            seen = jnp.concatenate([seen, binned], axis=-1)
        # One layer on both together, computed apart: the kernel's part once for all candidates.
        both = nn.Dense(self.width, name="candidate")(seen)
        both = both + nn.Dense(self.width, use_bias=False, name="kernel")(nn.silu(kernel))
        h = nn.silu(nn.Dense(self.width, name="hidden")(nn.silu(both)))
        return nn.Dense(1, name="out")(h)[..., 0]
