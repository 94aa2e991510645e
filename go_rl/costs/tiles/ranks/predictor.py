"""`RankPredictor`: which configuration of a kernel is faster, by an ensemble of networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.kernels.ensemble import Ensemble, batch_shapes
from go_rl.costs.kernels.features import KERNEL_FEATURES, NODE_FEATURES, kernel_features
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.learning.training import MEMBERS, MemberReport, Report, train_members
from go_rl.costs.tiles.ranks.data import (
    CANDIDATE_KINDS,
    CandidateKind,
    Candidates,
    RankGroups,
    candidate_columns,
    flag_candidates,
)
from go_rl.costs.tiles.ranks.network import RankNetwork, RankNetworkConfig
from go_rl.costs.tiles.ranks.training import RankTrainConfig, TrainedRanks, train_ranks
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.cutting.opcode_names import vocabulary_of

SHIPPED = Path(__file__).parent / "pretrained"


@dataclass(frozen=True, eq=False)
class RankPredictor(Ensemble[TrainedRanks, Sequence[RankGroups], Candidates]):
    """An ensemble that ranks configurations of kernels, of one kind or both."""

    what = "rank weights"
    unit = "score"
    format = "go_rl-kernel-ranks"
    interface = 2
    """Version 2: features of tilings assume the constants of `go_rl.costs.tiles.CoreSheet` as
    they are now; a change of these is a new version."""
    shipped = SHIPPED

    @property
    def kinds(self) -> tuple[CandidateKind, ...]:
        """Kinds of candidates that it knows."""
        return self.networks[0].config.kinds

    @classmethod
    def fit(
        cls,
        examples: Sequence[RankGroups],
        config: RankTrainConfig | None = None,
        members: int = MEMBERS,
        report: Report | None = None,
    ) -> RankPredictor:
        """Return networks that learned to rank the candidates of groups, both kinds together.

        Args:
            examples: of `flag_groups`, of `tile_groups` or of both.
            config: of each member; its opcodes and seed are set here.
            members: networks.
            report: receives the network, every hundredth update, and its loss.

        Raises:
            TrainingError: there is nothing to learn from, the data are of different targets, or
                the loss became NaN.
        """
        config = config or RankTrainConfig()
        targets = sorted({each.target for each in examples})
        if len(targets) != 1:
            given = ", ".join(targets) or "no data"
            raise TrainingError(f"ranks are learned from data of one target, not of {given}")
        names = {name for each in examples for name in each.kernels.graph.op_type}
        vocabulary = vocabulary_of(sorted(names))

        def train_one(seed: int, member: MemberReport) -> TrainedRanks:
            return train_ranks(examples, vocabulary, replace(config, seed=seed), member)

        card = {
            "data": [each.data for each in examples],
            "groups": {each.kind: each.count for each in examples},
            "training": asdict(config),
        }
        networks = train_members(train_one, config.seed, members, report)
        return cls(networks, vocabulary, targets[0], f"ranks-{targets[0]}", card)

    def predict(self, inputs: Candidates) -> Float64[np.ndarray, "R"]:
        """Return [R] the members' mean score of candidates; scores of different kernels do not
        compare.

        Raises:
            CheckpointError: nothing was learned of candidates of their kind.
        """
        if inputs.kind not in self.kinds:
            known = " and ".join(self.kinds)
            raise CheckpointError(f"weights {self.name!r} rank {known}, not {inputs.kind}")
        features = kernel_features(inputs.kernels, self.vocabulary)
        each = [network.scores(network.embed(features), inputs) for network in self.networks]
        return np.mean(each, axis=0)

    def arrays(self) -> Any:
        return self.members()

    @classmethod
    def columns(cls) -> list[list[str]]:
        names = (NODE_FEATURES, KERNEL_FEATURES, *map(candidate_columns, CANDIDATE_KINDS))
        return [list(each) for each in names]

    @classmethod
    def shapes(cls, network: Mapping[str, Any], members: int) -> tuple[RankNetworkConfig, Any]:
        embedding = KernelNetworkConfig(**network["embedding"])
        config = RankNetworkConfig(**{**network, "embedding": embedding})
        rows = {
            kind: jax.ShapeDtypeStruct((1, 2, getattr(config, kind)), jnp.float32)
            for kind in config.kinds
        }
        one = jax.eval_shape(RankNetwork(config).init, jax.random.key(0), batch_shapes(), rows)
        return config, {str(i): one for i in range(members)}

    @classmethod
    def restored(
        cls, config: RankNetworkConfig, members: int, tree: Any, about: Mapping[str, Any]
    ) -> RankPredictor:
        """Return the predictor restored from the contents of a file."""
        return cls(tuple(TrainedRanks(config, tree[str(i)]) for i in range(members)), **about)


@dataclass(frozen=True, eq=False)
class FlagRanks:
    """Ranks the settings of XLA's flags for any kernels."""

    predictor: RankPredictor

    def order(self, kernels: KernelSet) -> Float64[np.ndarray, "K S"]:
        """Return [K, S] the score of each of `flag_settings` for each kernel: of a kernel's, the
        smallest is the fastest.

        Raises:
            CheckpointError: nothing was learned of flags.
        """
        count, settings = kernels.num_kernels, len(flag_settings())
        features = flag_candidates(np.tile(np.arange(settings), count))
        kernel = np.repeat(np.arange(count), settings)
        scores = self.predictor.predict(Candidates("flags", kernels, kernel, features))
        return scores.reshape(count, settings)


def shipped_ranks(target: str, kind: CandidateKind) -> RankPredictor | None:
    """Return the ranks that ship for a target and know a kind; None where there are none."""
    for path in sorted(SHIPPED.glob("*.npz"), reverse=True):
        found = RankPredictor.load(path)
        if found.target == target and kind in found.kinds:
            return found
    return None
