"""Ranks: losses by hand, what is simple is learned, and what padding and order do not change."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from costs.tiles.ranks import CONFIG, TINY, flag_data, groups, heavy, learned, tile_data

from go_rl.core import TrainingError
from go_rl.costs.learning.losses import group_loss
from go_rl.costs.learning.metrics import ape, kendall
from go_rl.costs.tiles.ranks.data import tile_groups
from go_rl.costs.tiles.ranks.network import RankNetworkConfig
from go_rl.costs.tiles.ranks.predictor import FlagRanks, RankPredictor
from go_rl.costs.tiles.ranks.training import RankTrainConfig

LOG1P = np.log1p(np.exp(np.array([-2.0, -1.0, 1.0])))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("hinge", ((0.0 + 0.0 + 2.0) / 3 + 0.0) / 2),
        ("logistic", (LOG1P.sum() / 3 + LOG1P[0]) / 2),
        ("mse", (0.0 + 0.0 + 4.0 + 0.0 + 4.0) / 5),
    ],
)
def test_losses_by_hand(loss, expected):
    """In the first group 0 is faster than 1 and scored so by 2, 1 is faster than 2 but scored
    slower by 1; the second has a pair scored right by 2; the third is padding."""
    score = jnp.array([[0.0, 2.0, 1.0], [7.0, 5.0, 9.0], [3.0, 3.0, 3.0]])
    times = jnp.array([[0.0, 2.0, 3.0], [7.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    real = jnp.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert group_loss(loss, score, times, real) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_both_tasks_are_learned_with_one_embedding():
    """Which setting is best follows from the kernel's graph, which tiling from its features."""
    flags, tiles = groups()["flags"], groups()["tiles"]
    of_tiles = learned().predict(tiles.inputs)
    assert kendall(of_tiles, tiles.seconds, tiles.group) > 0.8
    assert ape(of_tiles, tiles.seconds, tiles.group) < 5.0
    best = FlagRanks(learned()).order(flags.kernels).argmin(axis=1)
    assert (best == np.where(heavy()[:-1], 2, 1)).mean() > 0.9


@pytest.mark.slow
def test_members_differ_and_the_same_run_gives_the_same():
    told: list[tuple[int, int]] = []
    kernels = flag_data().kernels

    def report(member: int, step: int, loss: float) -> None:
        told.append((member, step))

    again = RankPredictor.fit(list(groups().values()), CONFIG, 2, report)
    assert again.card["data"] == ["made", "made"]
    orders = [FlagRanks(replace(again, networks=(x,))).order(kernels) for x in again.networks]
    np.testing.assert_array_equal(orders[0], FlagRanks(learned()).order(kernels))
    np.testing.assert_allclose(FlagRanks(again).order(kernels), (orders[0] + orders[1]) / 2)
    assert not np.allclose(orders[0], orders[1])
    assert told == [(0, CONFIG.steps), (1, CONFIG.steps)]


@pytest.mark.parametrize(
    "wrong",
    [{"steps": 0}, {"batch": 0}, {"learning_rate": 0.0}, {"forget": 1.0}, {"most": 0.0}],
)
def test_bad_configurations_are_refused(wrong):
    with pytest.raises(TrainingError, match=next(iter(wrong))):
        RankTrainConfig(**wrong)


def test_bad_networks_and_data_are_refused():
    with pytest.raises(TrainingError, match="head must be >= 1"):
        RankNetworkConfig(TINY.embedding, head=0)
    with pytest.raises(TrainingError, match="bins must be >= 0"):
        RankNetworkConfig(TINY.embedding, bins=-1)
    other = tile_groups(replace(tile_data(), target="cpu-2"))
    with pytest.raises(TrainingError, match="of one target, not of cpu-1, cpu-2"):
        RankPredictor.fit([groups()["flags"], other])
    with pytest.raises(TrainingError, match="not of no data"):
        RankPredictor.fit([])
