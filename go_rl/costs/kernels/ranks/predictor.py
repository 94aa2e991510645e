"""`FlagRanks`: which setting of XLA's flags is the fastest for a kernel, by networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from go_rl.costs.kernels.ensemble import Ensemble, TrainedNetwork
from go_rl.costs.kernels.features import KERNEL_FEATURES, NODE_FEATURES, kernel_features
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.ranks.flag_times import FlagTimes
from go_rl.costs.kernels.ranks.network import RankNetwork, RankNetworkConfig
from go_rl.costs.kernels.ranks.training import RankTrainConfig, train_ranks
from go_rl.costs.learning.training import MEMBERS, MemberReport, Report, train_members
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.cutting.opcode_names import vocabulary_of

SHIPPED = Path(__file__).parent / "pretrained"


@dataclass(frozen=True, eq=False)
class FlagRanks(Ensemble[FlagTimes, KernelSet]):
    """An ensemble that ranks the settings of XLA's flags for any kernels."""

    what = "rank weights"
    unit = "score"
    format = "go_rl-kernel-ranks"
    interface = 3
    shipped = SHIPPED

    @classmethod
    def fit(
        cls,
        examples: FlagTimes,
        config: RankTrainConfig | None = None,
        members: int = MEMBERS,
        report: Report | None = None,
    ) -> FlagRanks:
        """Return networks that learned to rank the settings of kernels.

        Args:
            examples: `flag_times` of a data set.
            config: of each member; its opcodes and seed are set here.
            members: networks.
            report: receives the network, every hundredth update, and its loss.

        Raises:
            TrainingError: the loss became NaN.
        """
        config = config or RankTrainConfig()
        vocabulary = vocabulary_of(examples.kernels.graph.op_type)

        def train_one(seed: int, member: MemberReport) -> TrainedNetwork:
            return train_ranks(examples, vocabulary, replace(config, seed=seed), member)

        card = {"data": examples.data, "kernels": len(examples.number), "training": asdict(config)}
        networks = train_members(train_one, config.seed, members, report)
        return cls(networks, vocabulary, examples.target, f"ranks-{examples.target}", card)

    def predict(self, inputs: KernelSet) -> Float64[np.ndarray, "R"]:
        """Return [R] scores of all settings of the first kernel, then of the second, and so on."""
        return self.order(inputs).ravel()

    def order(self, kernels: KernelSet) -> Float64[np.ndarray, "K S"]:
        """Return [K, S] the members' mean score of each of `flag_settings` for each kernel: of a
        kernel's, the smallest is the fastest; scores of different kernels do not compare."""
        features = kernel_features(kernels, self.vocabulary)
        return np.mean([network.predict(features) for network in self.networks], axis=0)

    @classmethod
    def columns(cls) -> list[list[str]]:
        return [list(NODE_FEATURES), list(KERNEL_FEATURES), flag_settings()]

    @classmethod
    def network_of(cls, config: Mapping[str, Any]) -> RankNetwork:
        embedding = KernelNetworkConfig(**config["embedding"])
        return RankNetwork(RankNetworkConfig(**{**config, "embedding": embedding}))


def shipped_ranks(target: str) -> FlagRanks | None:
    """Return the ranks that ship for a target; None where there are none."""
    for path in sorted(SHIPPED.glob("*.npz"), reverse=True):
        found = FlagRanks.load(path)
        if found.target == target:
            return found
    return None
