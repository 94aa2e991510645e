"""Models and problems of go_rl, by settings that do not change when go_rl is renamed."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from go_rl.core import Objective, OpGraph, Problem, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, file_hardware, make_problem, named_cost
from go_rl.graphs.zoo.load_model import load_model

from ..fingerprint import Facts, digest, moments

DATA = "data:"
"""What marks a model of the public data sets: the path below their folder follows."""
OWN_HARDWARE = "file"
"""The hardware that a model file brings along."""
DATA_VARIABLE = "GO_RL_DATA"
"""Environment variable with the folder of the public data sets."""
KEPT = 3
"""Graphs and problems that stay in memory: the methods of one problem share its workspace."""


@dataclass(frozen=True)
class Setting:
    """One problem."""

    model: str
    """``zoo:NAME``, ``data:PATH``, or whatever else `go_rl.load` reads."""
    objective: str
    """``ring``, ``max-load``, ``latency`` or ``makespan``."""
    hardware: str
    """Name of a preset, or `OWN_HARDWARE`."""
    rules: str = "default"
    """Rule set of the ring."""
    decisions: tuple[str, ...] = ()
    """Makespan: what is decided; empty: all that makes sense."""
    cost: str = ""
    """Cost model; empty: the graph's own profile where it brings one and no FLOP, else the
    roofline."""
    memory: bool | None = None
    """Whether weights and live tensors must fit; None: as go_rl chooses."""
    all_devices: bool = False
    """Ring: every chip must be used."""
    fixed: tuple[tuple[int, int], ...] = ()
    """Pinned nodes: node index and device."""
    training: bool = False
    """Expand a profile into its forward and backward pass."""


def data_folder() -> Path | None:
    """Return the folder of the public data sets; None: it is not here."""
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    folder = Path(os.environ.get(DATA_VARIABLE, beside))
    return folder if folder.is_dir() else None


@lru_cache(KEPT)
def graph(model: str, training: bool = False) -> OpGraph:
    """Return the graph of a model."""
    if not model.startswith(DATA):
        return load_model(model, training=training)
    folder = data_folder()
    assert folder is not None, "cases of data sets are left out where there are none"
    return load_model(folder / model.removeprefix(DATA), training=training)


@lru_cache(KEPT)
def problem(setting: Setting) -> Problem:
    """Return the priced problem of a setting."""
    model = graph(setting.model, setting.training)
    own = file_hardware(model) if setting.hardware == OWN_HARDWARE else None
    hardware = own or load_hardware(setting.hardware)
    options = ProblemOptions(
        objective=Objective(setting.objective),
        rules=rule_set(setting.rules),
        memory=setting.memory,
        all_chips=setting.all_devices,
        fixed=dict(setting.fixed),
        cost_model=named_cost(setting.cost or _plain_cost(model), hardware),
        decisions=setting.decisions or None,
    )
    return make_problem(model, hardware, options)


def _plain_cost(model: OpGraph) -> str:
    return "profiled" if model.seconds and not model.has_flops else "analytical"


def graph_facts(model: str, training: bool = False) -> Facts:
    """Return what a model became: names, kinds and edges as a hash, costs and sizes as moments."""
    found = graph(model, training)
    return {
        "nodes": found.num_nodes,
        "edges": found.num_edges,
        "structure": digest(
            found.names,
            found.op_type,
            found.kind,
            found.senders,
            found.receivers,
            found.edge_output,
            found.colocation,
            found.tied_node,
            found.tied_array,
            found.is_backward,
            found.is_output,
        ),
        "shapes": digest(found.output_shape),
        "flops": moments([found.flops]),
        "bytes": moments([found.bytes_accessed, found.output_bytes, found.weight_bytes]),
        "edge bytes": moments([found.edge_bytes]),
        "profile": moments([found.seconds[kind] for kind in sorted(found.seconds)]),
    }


def price_facts(setting: Setting) -> Facts:
    """Return the prices of a problem: operators on every kind of device, transfers, sizes."""
    found = problem(setting)
    return {
        "seconds": moments([found.seconds]),
        "transfers": moments([found.transfer_seconds]),
        "bytes": moments(
            [found.output_bytes, found.weight_bytes, found.streamed_bytes, found.edge_bytes]
        ),
    }
