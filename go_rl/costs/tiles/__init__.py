"""Tiled programs: kernels, the ways to cut their loops into tiles, and what they cost.

Building and timing kernels needs TVM, an optional extra (``pip install 'go_rl[tvm]'``); all else
here does not.
"""

from go_rl.costs.tiles.estimate import CoreSheet, TileEstimate, estimate_tiles
from go_rl.costs.tiles.features import feature_names, tile_features
from go_rl.costs.tiles.loops import TileError
from go_rl.costs.tiles.program import TileProgram
from go_rl.costs.tiles.schedule import TARGET
from go_rl.costs.tiles.space import default_tiles, naive_tiles, tile_configurations
from go_rl.costs.tiles.tiled_program import TiledProgram, Tiles
from go_rl.costs.tiles.workloads import TileWorkload, tile_workloads

__all__ = [
    "TARGET",
    "CoreSheet",
    "TileError",
    "TileEstimate",
    "TileProgram",
    "TileWorkload",
    "TiledProgram",
    "Tiles",
    "default_tiles",
    "estimate_tiles",
    "feature_names",
    "naive_tiles",
    "tile_configurations",
    "tile_features",
    "tile_workloads",
]
