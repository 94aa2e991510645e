"""The network that ranks settings of a kernel's flags: an embedding of the kernel's graph, and a
head that reads it with each setting ("A Learnt Performance Model for TPUs").
"""

from __future__ import annotations

from dataclasses import dataclass, field

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, NOT_NEGATIVE, check_ranges
from go_rl.costs.kernels.batch import KernelBatch
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.costs.kernels.network import (
    KernelNetwork,
    KernelNetworkConfig,
    PiecewiseLinear,
    Standardised,
)


@dataclass(frozen=True)
class RankNetworkConfig:
    """Sizes and parts of the network."""

    embedding: KernelNetworkConfig = field(
        default_factory=lambda: KernelNetworkConfig(outputs=16, additive=False)
    )
    """The network that embeds kernels; its outputs are the columns of the embedding."""
    head: int = 128
    """Width of the two layers of the head."""
    bins: int = 16
    """Bins of each feature of a setting, see `PiecewiseLinear`; 0: none."""

    def __post_init__(self) -> None:
        check_ranges(self, "ranks", TrainingError, head=COUNT, bins=NOT_NEGATIVE)


class RankNetwork(nn.Module):
    """Scores settings: of two settings of one kernel, that with the smaller score is faster."""

    config: RankNetworkConfig

    @property
    def columns(self) -> int:
        """Number of settings."""
        return len(flag_settings())

    @nn.compact
    def __call__(self, batch: KernelBatch) -> Float[Array, "B S"]:
        """Return [B, S] the score of each setting of flags for each kernel."""
        width, bins = self.config.head, self.config.bins
        kernel = KernelNetwork(self.config.embedding, name="embedding")(batch)
        settings = jnp.eye(len(flag_settings()))
        seen = Standardised(name="setting_scale")(settings)
        if bins:
            binned = PiecewiseLinear(bins, name="setting_bins")(settings)
            seen = jnp.concatenate([seen, binned], axis=-1)
        # One layer on both together, computed apart: each setting's part once for all kernels.
        both = nn.Dense(width, name="setting")(seen)
        both = both + nn.Dense(width, use_bias=False, name="kernel")(nn.silu(kernel))[:, None]
        h = nn.silu(nn.Dense(width, name="hidden")(nn.silu(both)))
        return nn.Dense(1, name="out")(h)[..., 0]
