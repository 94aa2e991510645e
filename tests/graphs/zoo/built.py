"""Entries of the zoo as tests look at them: their parameters, their traced graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from go_rl.core import OpGraph
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.zoo_model import ZooModel


def parameter_count(built: tuple[Any, Any, Any]) -> int:
    """Return the number of weights of what an entry builds."""
    _, args, weights = built
    return sum(x.size for i in weights for x in jax.tree.leaves(args[i]))


def traced_entry(entries: Sequence[ZooModel], name: str) -> OpGraph:
    """Return the graph of the entry with this name."""
    (entry,) = (each for each in entries if each.name == name)
    function, args, weights = entry.build()
    return trace_jax(function, *args, weights=weights, name=name)
