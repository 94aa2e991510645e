"""The frozen graphs of the model zoo by name; `load` reads ``zoo:NAME``."""

from __future__ import annotations

from go_rl.zoo import SPLITS, ZOO_VERSION, ZooEntry, zoo_entry, zoo_names
from go_rl.zoo.load_model import ZOO_PREFIX

__all__ = ["SPLITS", "ZOO_PREFIX", "ZOO_VERSION", "ZooEntry", "zoo_entry", "zoo_names"]
