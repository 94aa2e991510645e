"""Options of each unit, for policies whose decisions are the nodes' own (form ``nodes``)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.objectives.makespan.choices import LEVELS
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace

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
