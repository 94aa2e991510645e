"""Readers: a model file or function becomes an `OpGraph`; the entry point is `load`."""

from go_rl.graphs.readers.archive import load_graph, save_graph
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.hlo.reader import read_hlo
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_reader import read_stablehlo
from go_rl.graphs.readers.load import load
from go_rl.graphs.readers.profiles.dnn_partitioning import read_dnn_partitioning
from go_rl.graphs.readers.profiles.doppler import read_doppler
from go_rl.graphs.readers.profiles.pipedream import read_pipedream
from go_rl.graphs.readers.profiles.piper import read_piper

__all__ = [
    "GraphBuilder",
    "Node",
    "load",
    "load_graph",
    "read_dnn_partitioning",
    "read_doppler",
    "read_hlo",
    "read_pipedream",
    "read_piper",
    "read_stablehlo",
    "save_graph",
]
