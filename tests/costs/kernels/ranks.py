"""A made data set of kernels under settings of flags, and a tiny network, for tests."""

from functools import cache

import numpy as np
from costs.kernels.kernels import few_features, few_kernels

from go_rl.core import OpKind
from go_rl.costs.kernels.batch import LENGTHS
from go_rl.costs.kernels.measure.data import KernelData
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.ranks.flag_times import FlagTimes, flag_times
from go_rl.costs.kernels.ranks.network import RankNetworkConfig
from go_rl.costs.kernels.ranks.predictor import FlagRanks
from go_rl.costs.kernels.ranks.training import RankTrainConfig
from go_rl.graphs.cutting.kernel_set import KernelSet

TINY = RankNetworkConfig(
    KernelNetworkConfig(width=8, layers=1, head=8, opcode_width=4, outputs=8), head=16
)
CONFIG = RankTrainConfig(TINY, updates=100, batch=8, learning_rate=2e-2)
SETTINGS = len(flag_settings())


@cache
def small_kernels() -> KernelSet:
    """Kernels of one length bucket."""
    return few_kernels().take(np.flatnonzero(np.diff(few_features().first_node) <= LENGTHS[0])[:20])


def heavy() -> np.ndarray:
    """[K] whether each kernel holds a matrix product."""
    kernels = small_kernels()
    return np.bincount(kernels.kernel, kernels.graph.kind == OpKind.MATMUL) > 0


@cache
def flag_data() -> KernelData:
    """Kernels with a matrix product are fastest under the third setting, others under the second;
    the last kernel has one setting only."""
    kernels = small_kernels()
    count = kernels.num_kernels
    times = np.full((count, SETTINGS), 3e-6)
    times[np.arange(count), np.where(heavy(), 2, 1)] = 2e-6
    rows = np.arange((count - 1) * SETTINGS + 1)
    return KernelData(
        name="made", target="cpu-1", kernels=kernels, models=("m",) * count,
        settings=("", *flag_settings()), kernel=rows // SETTINGS, setting=1 + rows % SETTINGS,
        round=np.zeros(len(rows), np.int64), seconds=times.ravel()[rows],
        spread=np.zeros(len(rows)), xla=np.zeros((count, 3)), failures={},
    )  # fmt: skip


@cache
def times() -> FlagTimes:
    """What is learned from them."""
    return flag_times(flag_data())


@cache
def learned() -> FlagRanks:
    """One network that learned it."""
    return FlagRanks.fit(times(), CONFIG, members=1)
