"""The tile task: kernels, the ways to cut their loops into tiles, and what they cost.

Building and timing kernels needs TVM, an optional extra (``pip install 'go_rl[tvm]'``); all else
here does not.
"""

from go_rl.programs.tiles.estimate import CoreSheet, TileEstimate, estimate_tiles
from go_rl.programs.tiles.features import feature_names, tile_features
from go_rl.programs.tiles.loops import TileError
from go_rl.programs.tiles.program import TileProgram
from go_rl.programs.tiles.schedule import TARGET
from go_rl.programs.tiles.sizes import Tiles
from go_rl.programs.tiles.space import default_tiles, naive_tiles, tile_configurations
from go_rl.programs.tiles.tiled_program import TiledProgram
from go_rl.programs.tiles.workloads import TileWorkload, tile_workloads

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
