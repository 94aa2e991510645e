"""`SummedMlp`: a multi-layer perceptron on summed leaf vectors, as TenSet's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import flax.linen as nn
import numpy as np
from jaxtyping import Array, Float, Float32, Int64

from experiments.programs.rivals.network_rival import NetworkRival, RivalRun
from go_rl.costs.programs.learn.code_inputs import summed_program_features
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.network import Layers
from go_rl.costs.programs.learn.prepared import column_scale, masked_rows


class MlpNetwork(nn.Module):
    """Dense layers; reads [B, 2 F] standardised features and which of them are known."""

    layers: tuple[int, ...] = (256, 256, 256)
    """Hidden units."""

    @nn.compact
    def __call__(self, batch: Float[Array, "B N"]) -> Float[Array, "B"]:
        """Return [B] standardised labels."""
        return Layers((*self.layers, 1), name="layers")(batch)[:, 0]


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Programs as rows of features, all in one group."""

    rows: Float32[np.ndarray, "P N"]

    @property
    def groups(self) -> tuple[Int64[np.ndarray, "P"], ...]:
        return (np.arange(len(self.rows)),)

    def batch(self, group: int, which: Int64[np.ndarray, "B"]) -> Float32[np.ndarray, "B N"]:
        return self.rows[which]


@dataclass(frozen=True, eq=False)
class SummedMlp(NetworkRival):
    """See above."""

    what = "an MLP of summed features"
    network_type = MlpNetwork
    run_defaults = RivalRun(updates=4000)

    @classmethod
    def scale_of(cls, inputs: ProgramInputs) -> dict[str, np.ndarray]:
        return column_scale(summed_program_features(inputs))

    @classmethod
    def batched(cls, inputs: ProgramInputs, scale: Mapping[str, np.ndarray]) -> FeatureRows:
        return FeatureRows(masked_rows(summed_program_features(inputs), scale))
