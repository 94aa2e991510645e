"""The model zoo: named graphs of real architectures, frozen; their versions and their split."""

from go_rl.graphs.zoo.index import SPLITS, ZOO_VERSION, ZooEntry, zoo_entry, zoo_graph, zoo_names

__all__ = ["SPLITS", "ZOO_VERSION", "ZooEntry", "zoo_entry", "zoo_graph", "zoo_names"]
