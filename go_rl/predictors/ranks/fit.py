"""From data sets to the weights that rank configurations: an ensemble for one task or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from go_rl.core import TrainingError
from go_rl.measure.kernels.data import KernelData
from go_rl.measure.tiles.data import TileData
from go_rl.predictors.kernels.opcodes import vocabulary_of
from go_rl.predictors.ranks.data import RankGroups, Rows, Task, flag_groups, tile_groups
from go_rl.predictors.ranks.training import RankTrainConfig, TrainedRanks, train_ranks
from go_rl.predictors.ranks.weights import RankWeights
from go_rl.predictors.training import MEMBERS, MemberReport, Report, train_members


def fit_rank_weights(
    flags: KernelData | None,
    tiles: TileData | None,
    which: Mapping[Task, Rows] | None = None,
    config: RankTrainConfig | None = None,
    members: int = MEMBERS,
    report: Report | None = None,
) -> RankWeights:
    """Return weights that learned to rank configurations of kernels.

    Args:
        flags: kernels measured under settings of flags; None: that task is not learned.
        tiles: programs measured under tilings; None: that task is not learned.
        which: kernels or programs, by task, that are learned from; all of a task not named.
        config: of each member; its opcodes and seed are set here.
        members: networks.
        report: receives the network, every hundredth update, and its loss.

    Raises:
        TrainingError: there is nothing to learn from, the data are of different targets, or the
            loss became NaN.
    """
    which = which or {}
    groups: dict[Task, RankGroups] = {}
    if flags is not None:
        groups["flags"] = flag_groups(flags, which.get("flags"))
    if tiles is not None:
        groups["tiles"] = tile_groups(tiles, which.get("tiles"))
    given = [each for each in (flags, tiles) if each is not None]
    targets = sorted({each.target for each in given})
    if len(targets) != 1:
        told = ", ".join(targets) or "no data"
        raise TrainingError(f"ranks are learned from data of one target, not of {told}")
    card = {"data": [each.name for each in given]}
    return fit_rank_groups(groups, targets[0], card, config, members, report)


def fit_rank_groups(
    groups: Mapping[Task, RankGroups],
    target: str,
    card: Mapping[str, Any],
    config: RankTrainConfig | None = None,
    members: int = MEMBERS,
    report: Report | None = None,
) -> RankWeights:
    """Return weights that learned from groups of candidates, by task; as `fit_rank_weights`.

    Args:
        groups: by task.
        target: where they were measured.
        card: what the weights' model card says beside the training.
        config: of each member.
        members: networks.
        report: receives the network, every hundredth update, and its loss.
    """
    config = config or RankTrainConfig()
    names = {name for each in groups.values() for name in each.kernels.graph.op_type}
    vocabulary = vocabulary_of(sorted(names))

    def train_one(seed: int, told: MemberReport) -> TrainedRanks:
        return train_ranks(groups, vocabulary, replace(config, seed=seed), told)

    trained = train_members(train_one, config.seed, members, report)
    said = {
        **card, "groups": {task: each.count for task, each in groups.items()},
        "training": asdict(config),
    }  # fmt: skip
    return RankWeights(trained, vocabulary, target, f"ranks-{target}", said)
