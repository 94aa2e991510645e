"""Readers: a model file or function becomes an `OpGraph`; one door, `load`."""

from go_rl.readers.archive import load_graph, save_graph
from go_rl.readers.dnn_partitioning import read_dnn_partitioning
from go_rl.readers.hlo_reader import read_hlo
from go_rl.readers.load import load
from go_rl.readers.pipedream import read_pipedream
from go_rl.readers.stablehlo_reader import read_stablehlo

__all__ = [
    "load",
    "load_graph",
    "read_dnn_partitioning",
    "read_hlo",
    "read_pipedream",
    "read_stablehlo",
    "save_graph",
]
