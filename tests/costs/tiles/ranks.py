"""Made data sets of ranked configurations, and tiny networks, for tests."""

from functools import cache
from math import prod

import numpy as np
from costs.kernels.kernels import few_features, few_kernels

from go_rl.core import OpKind
from go_rl.costs.kernels.batch import LENGTHS
from go_rl.costs.kernels.measure.data import KernelData
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.tiles import TileProgram, tile_configurations
from go_rl.costs.tiles.measure.data import TileData
from go_rl.costs.tiles.ranks.data import CandidateKind, RankGroups, flag_groups, tile_groups
from go_rl.costs.tiles.ranks.network import RankNetworkConfig
from go_rl.costs.tiles.ranks.predictor import RankPredictor
from go_rl.costs.tiles.ranks.training import RankTrainConfig
from go_rl.graphs.cutting.kernel_set import KernelSet

TINY = RankNetworkConfig(
    KernelNetworkConfig(width=8, layers=1, head=8, opcode_width=4, outputs=8), head=16
)
CONFIG = RankTrainConfig(TINY, updates=100, batch=8, learning_rate=2e-2)
PROGRAMS = tuple(
    TileProgram("matmul", (8 * 2**i, 16, 32), epilogue)
    for i in range(2)
    for epilogue in ("none", "bias")
)
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
def tile_data() -> TileData:
    """The larger a register tile, the faster."""
    tiles = [tile_configurations(program, 5, seed=0) for program in PROGRAMS]
    cut = tuple(one for each in tiles for one in each)
    return TileData(
        name="made", target="cpu-1", programs=PROGRAMS, families=("cnn",) * len(PROGRAMS),
        models=("a", "b") * (len(PROGRAMS) // 2), tiles=cut,
        program=np.repeat(np.arange(len(PROGRAMS)), [len(each) for each in tiles]),
        round=np.zeros(len(cut), np.int64), spread=np.zeros(len(cut)), failures={},
        seconds=np.array([1e-4 / np.sqrt(prod(one.register)) for one in cut]),
    )  # fmt: skip


@cache
def groups() -> dict[CandidateKind, RankGroups]:
    """Of both."""
    return {"flags": flag_groups(flag_data()), "tiles": tile_groups(tile_data())}


@cache
def learned() -> RankPredictor:
    """One network that learned both kinds of candidates."""
    return RankPredictor.fit(list(groups().values()), CONFIG, members=1)
