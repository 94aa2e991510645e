"""Options of each unit, for policies whose decisions are the nodes' own (form ``nodes``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Float32, Float64, Int, Int32, Int64

from go_rl.objectives.makespan.choices import LEVELS
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace


class UnitOptions(NamedTuple):
    """Options that the units of a graph choose among."""

    table: Float[Array, "U K"]
    """[U, K] inf: impossible; else how much slower a device is. See `node_options`."""
    leader: Int[Array, "U"]
    """[U] unit whose choice holds; a unit that other units decide for follows one of them."""


LEAST = 1e-12
"""Seconds below which units count as equally fast everywhere."""


def node_options(
    workspace: MakespanWorkspace, units: MakespanUnits, rows: int
) -> dict[str, Float32[np.ndarray, "U _"]]:
    """Return [U, K] options by decision, for ``rows`` rows of which only the first are units.

    inf: impossible; else 0 for levels, and for devices log2 of the unit's seconds against its
    fastest device. K: a power of two >= the devices, or `LEVELS`. Padding has the first option
    only.
    """
    tables = {
        "placement": _devices(workspace, units),
        "schedule": np.zeros((units.num_units, LEVELS)),
        "fusion": _fusion(workspace, units),
    }
    found = {}
    for decision, table in tables.items():
        found[decision] = np.full((rows, table.shape[1]), np.inf, np.float32)
        found[decision][:, 0] = 0.0
        found[decision][: units.num_units] = table
    return found


def unit_leaders(
    workspace: MakespanWorkspace, units: MakespanUnits, rows: int
) -> Int32[np.ndarray, "U"]:
    """Return [U] the unit that decides where each of ``rows`` units is placed.

    A unit decides for itself if it holds a node that places a colocation class, or a free node;
    else for it decides the unit that places its most expensive node.
    """
    held = np.flatnonzero(units.unit_of >= 0)
    decider = deciding_nodes(workspace, units)
    by_work = held[np.argsort(workspace.problem.seconds.min(axis=0)[held], kind="stable")]
    leader = np.arange(rows, dtype=np.int32)
    leader[units.unit_of[by_work]] = units.unit_of[decider[by_work]]
    own = units.unit_of[held[decider[held] == held]]
    leader[own] = own
    return leader


def deciding_nodes(workspace: MakespanWorkspace, units: MakespanUnits) -> Int64[np.ndarray, "N"]:
    """Return [N] the node whose unit places each node: the lowest of its colocation class that has
    a unit."""
    count, held = workspace.num_nodes, np.flatnonzero(units.unit_of >= 0)
    first = np.full(count, count)
    np.minimum.at(first, workspace.class_leader[held], held)
    decider = first[workspace.class_leader]
    return np.where(decider < count, decider, np.arange(count))


def _devices(workspace: MakespanWorkspace, units: MakespanUnits) -> Float64[np.ndarray, "U K"]:
    """A unit without any possible device may have all: no plan is legal, whatever it takes."""
    held, devices = units.unit_of >= 0, workspace.num_devices
    seconds = units.seconds.T.copy()
    for device, allowed in enumerate(workspace.choices.allowed):
        barred = np.bincount(units.unit_of[held], ~allowed[held], units.num_units) > 0
        seconds[barred, device] = np.inf
    seconds[~np.isfinite(seconds).any(axis=1)] = 0.0
    seconds = np.maximum(seconds, LEAST)
    table = np.full((units.num_units, 1 << (devices - 1).bit_length()), np.inf)
    table[:, :devices] = np.log2(seconds / seconds.min(axis=1, keepdims=True))
    return table


def _fusion(workspace: MakespanWorkspace, units: MakespanUnits) -> Float64[np.ndarray, "U K"]:
    """Only units with a producer that may join a consumer choose a level."""
    held = units.unit_of >= 0
    able = np.bincount(units.unit_of[held], workspace.fuser.may_fuse[held], units.num_units) > 0
    table = np.zeros((units.num_units, LEVELS))
    table[~able, 1:] = np.inf
    return table
