"""From data sets to the weights that rank configurations: an ensemble for one task or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from go_rl.core import TrainingError
from go_rl.cost.kernel_data import KernelData
from go_rl.cost.learned.opcodes import vocabulary_of
from go_rl.cost.learned.rank_data import RankGroups, Rows, Task, flag_groups, tile_groups
from go_rl.cost.learned.rank_training import RankTrainConfig, train_ranks
from go_rl.cost.learned.rank_weights import RankWeights
from go_rl.cost.tile_data import TileData

MEMBERS = 3
"""Networks of an ensemble; they differ by their seed."""


def fit_rank_weights(
    flags: KernelData | None,
    tiles: TileData | None,
    which: Mapping[Task, Rows] | None = None,
    config: RankTrainConfig | None = None,
    members: int = MEMBERS,
    report: Callable[[str], None] | None = None,
) -> RankWeights:
    """Return weights that learned to rank configurations of kernels.

    Args:
        flags: kernels measured under settings of flags; None: that task is not learned.
        tiles: programs measured under tilings; None: that task is not learned.
        which: kernels or programs, by task, that are learned from; all of a task not named.
        config: of each member; its opcodes and seed are set here.
        members: networks.
        report: is told a sentence now and then.

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
    report: Callable[[str], None] | None = None,
) -> RankWeights:
    """Return weights that learned from groups of candidates, by task; as `fit_rank_weights`.

    Args:
        groups: by task.
        target: where they were measured.
        card: what the weights' model card says beside the training.
        config: of each member.
        members: networks.
        report: is told a sentence now and then.
    """
    config = config or RankTrainConfig()
    names = {name for each in groups.values() for name in each.kernels.graph.op_type}
    vocabulary = vocabulary_of(sorted(names))
    trained = []
    for i in range(members):

        def told(step: int, loss: float, member: int = i) -> None:
            if report is not None:
                report(f"member {member + 1}/{members}, update {step}, loss {loss:.4f}")

        one = replace(config, seed=config.seed + i)
        trained.append(train_ranks(groups, vocabulary, one, told))
    said = {
        **card, "groups": {task: each.count for task, each in groups.items()},
        "training": asdict(config),
    }  # fmt: skip
    return RankWeights(tuple(trained), vocabulary, target, f"ranks-{target}", said)
