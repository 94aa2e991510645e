"""The tile task: kernels, the ways to cut their loops into tiles, and what they cost.

Building and timing kernels needs TVM, an optional extra (``pip install 'go_rl[tiles]'``); all else
here does not.
"""

from go_rl.cost.tiles.tile_estimate import CoreSheet, TileEstimate, estimate_tiles
from go_rl.cost.tiles.tile_features import feature_names, tile_features
from go_rl.cost.tiles.tile_loops import TileError
from go_rl.cost.tiles.tile_measure import TileTask, compile_tiles
from go_rl.cost.tiles.tile_program import TileProgram
from go_rl.cost.tiles.tile_schedule import TARGET
from go_rl.cost.tiles.tile_sizes import Tiles
from go_rl.cost.tiles.tile_space import default_tiles, naive_tiles, tile_configurations
from go_rl.cost.tiles.tile_workloads import TileWorkload, tile_workloads
from go_rl.cost.tiles.tiled_program import TiledProgram

__all__ = [
    "TARGET",
    "CoreSheet",
    "TileError",
    "TileEstimate",
    "TileProgram",
    "TileTask",
    "TileWorkload",
    "TiledProgram",
    "Tiles",
    "compile_tiles",
    "default_tiles",
    "estimate_tiles",
    "feature_names",
    "naive_tiles",
    "tile_configurations",
    "tile_features",
    "tile_workloads",
]
