"""Data of a ranking network: groups of candidates, each the ways to configure one kernel.

A candidate is a row of features. Of the kind *flags* it has one column for each of
`go_rl.costs.kernels.measure.settings.flag_settings`, of which one is 1; of the kind *tiles* those
of `go_rl.costs.tiles.features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Int64

from go_rl.core import TrainingError
from go_rl.costs.kernels.measure.data import KernelData
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.costs.tiles import TileProgram, Tiles, feature_names, tile_features
from go_rl.costs.tiles.measure.data import TileData
from go_rl.graphs.cutting.kernel_set import KernelSet

CandidateKind = Literal["flags", "tiles"]
CANDIDATE_KINDS: tuple[CandidateKind, ...] = get_args(CandidateKind)
CONFIDENT = 0.2
"""Largest relative half-width of the 95 % interval of a time that takes part in a choice: one that
is known less well may look the fastest, and then every other choice seems to lose. (Of tilings
timed again hours later, those known to 2 % were 5 % apart, those beyond this 20 %.)"""
OTHER = -1
"""Number of a setting that is no candidate of flags."""
Rows = Int[np.ndarray, "J"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """``R`` candidates of ``K`` kernels: what is ranked."""

    kind: CandidateKind
    kernels: KernelSet
    kernel: Int64[np.ndarray, "R"]
    """[R] the kernel that each candidate is of."""
    features: Float32[np.ndarray, "R C"]
    """[R, C] see `candidate_columns`."""


@dataclass(frozen=True, eq=False)
class RankGroups:
    """``G`` kernels with two candidates or more each, ``R`` altogether: what is learned from."""

    kind: CandidateKind
    data: str
    """Name of the data set."""
    target: str
    """Kind of device that they were measured on."""
    number: Int64[np.ndarray, "G"]
    """[G] place of each kernel or program in its data set, ascending."""
    kernels: KernelSet
    """Kernels of the groups."""
    first: Int64[np.ndarray, "G1"]
    """[G + 1] where the candidates of each kernel begin, and the end."""
    row: Int64[np.ndarray, "R"]
    """[R] place of each measurement in its data set."""
    candidates: Float32[np.ndarray, "R C"]
    seconds: Float64[np.ndarray, "R"]

    @property
    def count(self) -> int:
        """Number of groups G."""
        return len(self.number)

    @property
    def group(self) -> Int64[np.ndarray, "R"]:
        """[R] the group of each candidate, in 0..G-1."""
        return np.repeat(np.arange(self.count), np.diff(self.first))

    @property
    def inputs(self) -> Candidates:
        """The candidates alone."""
        return Candidates(self.kind, self.kernels, self.group, self.candidates)

    def take(self, which: Rows) -> RankGroups:
        """Return some of the groups, each at most once, in the order that they have."""
        kept = np.zeros(self.count, np.bool_)
        kept[which] = True
        rows = np.repeat(kept, np.diff(self.first))
        return replace(
            self,
            number=self.number[kept],
            kernels=self.kernels.take(np.flatnonzero(kept)),
            first=np.concatenate([[0], np.cumsum(np.diff(self.first)[kept])]).astype(np.int64),
            row=self.row[rows],
            candidates=self.candidates[rows],
            seconds=self.seconds[rows],
        )


class CandidateBatch(NamedTuple):
    """Candidates of ``B`` groups, some of them padding, as rows of ``C`` candidates."""

    features: Float32[np.ndarray, "B C F"]
    log_seconds: Float32[np.ndarray, "B C"]
    real: Float32[np.ndarray, "B C"]
    """[B, C] 1 for candidates, 0 for padding."""


def candidate_columns(kind: CandidateKind) -> tuple[str, ...]:
    """Return what each column of candidates of a kind is."""
    return tuple(flag_settings()) if kind == "flags" else feature_names()


def flag_groups(data: KernelData) -> RankGroups:
    """Return the kernels of a data set that were measured under several settings of flags.

    Args:
        data: of kernels; measurements of the first round count, if their time is known to within
            `CONFIDENT`.

    Raises:
        TrainingError: there is no such kernel.
    """
    number = {setting: i for i, setting in enumerate(flag_settings())}
    of_setting = np.array([number.get(setting, OTHER) for setting in data.settings])
    chosen = of_setting[data.setting]
    usable = np.asarray((chosen != OTHER) & (data.round == 0) & (data.spread <= CONFIDENT))
    rows = _rows_of_groups(data.kernel, usable)
    _check_any(rows, "flags", f"{data.name}: no kernel was measured under two settings of flags")
    kernels = data.kernels.take(np.unique(data.kernel[rows]))
    table = flag_candidates(chosen[rows])
    return _groups("flags", data, rows, data.kernel[rows], kernels, table)


def tile_groups(data: TileData) -> RankGroups:
    """Return the programs of a data set that were measured under several tilings; as `flag_groups`.

    Raises:
        TrainingError: there is no such program.
    """
    usable = np.asarray(data.first & (data.spread <= CONFIDENT))
    rows = _rows_of_groups(data.program, usable)
    _check_any(rows, "tiles", f"{data.name}: no program was measured under two tilings")
    kernels = data.kernels.take(np.unique(data.program[rows]))
    programs = [data.programs[i] for i in data.program[rows].tolist()]
    table = tile_candidates(programs, [data.tiles[i] for i in rows.tolist()])
    return _groups("tiles", data, rows, data.program[rows], kernels, table)


def flag_candidates(setting: Int[np.ndarray, "R"]) -> Float32[np.ndarray, "R S"]:
    """Return [R, S] candidates of flag settings, by their numbers."""
    return np.eye(len(flag_settings()), dtype=np.float32)[setting]


def tile_candidates(
    programs: Sequence[TileProgram], tiles: Sequence[Tiles]
) -> Float32[np.ndarray, "R F"]:
    """Return [R, F] candidates of tilings, each of the program at its place.

    Raises:
        TileError: tiles do not fit their program.
    """
    table = [tile_features(one, cut) for one, cut in zip(programs, tiles, strict=True)]
    return np.array(table, np.float32).reshape(len(table), len(feature_names()))


def candidate_batch(
    groups: RankGroups, which: Rows, shape: tuple[int, int], rng: np.random.Generator
) -> CandidateBatch:
    """Return the candidates of some groups as a batch, padding last.

    Args:
        groups: of one kind.
        which: at most ``shape[0]`` of them.
        shape: groups and candidates of the batch; of a group with more candidates some are drawn.
        rng: draws them.
    """
    features = np.zeros((*shape, groups.candidates.shape[1]), np.float32)
    log_seconds, real = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for i, k in enumerate(which.tolist()):
        rows = np.arange(int(groups.first[k]), int(groups.first[k + 1]))
        if len(rows) > shape[1]:
            rows = rng.choice(rows, shape[1], replace=False)
        features[i, : len(rows)] = groups.candidates[rows]
        log_seconds[i, : len(rows)] = np.log(groups.seconds[rows])
        real[i, : len(rows)] = 1.0
    return CandidateBatch(features, log_seconds, real)


def _rows_of_groups(
    owner: Int64[np.ndarray, "N"], usable: Bool[np.ndarray, "N"]
) -> Int64[np.ndarray, "R"]:
    """[R] usable rows of owners that have two or more, by owner."""
    count = np.bincount(owner[usable], minlength=owner.max(initial=0) + 1)
    rows = np.flatnonzero(usable & (count > 1)[owner])
    return rows[np.argsort(owner[rows], kind="stable")]


def _check_any(rows: np.ndarray, kind: CandidateKind, complaint: str) -> None:
    if not len(rows):
        raise TrainingError(f"{complaint}; measure some (go-rl measure kernels --vary {kind})")


def _groups(
    kind: CandidateKind,
    data: KernelData | TileData,
    rows: Int64[np.ndarray, "R"],
    owner: Int64[np.ndarray, "R"],
    kernels: KernelSet,
    candidates: Float32[np.ndarray, "R C"],
) -> RankGroups:
    number, first = np.unique(owner, return_index=True)
    ends = np.append(first, len(rows)).astype(np.int64)
    return RankGroups(
        kind=kind, data=data.name, target=data.target, number=number, kernels=kernels, first=ends,
        row=rows, candidates=candidates, seconds=data.seconds[rows],
    )  # fmt: skip
