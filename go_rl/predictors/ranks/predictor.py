"""Ranking configurations of kernels with learned weights: the smaller a score, the faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from go_rl.kernels import KernelSet
from go_rl.measure.kernels.settings import flag_settings
from go_rl.measure.tiles.data import program_kernels
from go_rl.predictors.ranks.data import flag_candidates, tile_candidates
from go_rl.predictors.ranks.weights import RankWeights
from go_rl.programs.tiles import TileProgram, Tiles


@dataclass(frozen=True, eq=False)
class FlagRanks:
    """Ranks the settings of XLA's flags for any kernels."""

    weights: RankWeights

    def order(self, kernels: KernelSet) -> Float64[np.ndarray, "K S"]:
        """Return [K, S] the score of each of `flag_settings` for each kernel: of a kernel's, the
        smallest is the fastest.

        Raises:
            CheckpointError: the weights know nothing of flags.
        """
        count, settings = kernels.num_kernels, len(flag_settings())
        candidates = flag_candidates(np.tile(np.arange(settings), count))
        kernel = np.repeat(np.arange(count), settings)
        scores = self.weights.scores("flags", kernels, kernel, candidates)
        return scores.reshape(count, settings)


def rank_tiles(
    weights: RankWeights,
    programs: Sequence[TileProgram],
    tiles: Sequence[Sequence[Tiles]],
) -> list[Float64[np.ndarray, "_"]]:
    """Return for each program the score of each of its tilings: the smallest is the fastest.

    Args:
        weights: that know the task tiles.
        programs: at least one.
        tiles: tilings of each program.

    Raises:
        CheckpointError: the weights know nothing of tilings.
        TileError: a tiling does not fit its program.
    """
    counts = [len(each) for each in tiles]
    owners = [one for one, count in zip(programs, counts, strict=True) for _ in range(count)]
    candidates = tile_candidates(owners, [cut for each in tiles for cut in each])
    kernel = np.repeat(np.arange(len(programs)), counts)
    scores = weights.scores("tiles", program_kernels(programs), kernel, candidates)
    return np.split(scores, np.cumsum(counts)[:-1])
