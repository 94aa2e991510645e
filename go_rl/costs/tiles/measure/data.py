"""`TileData`: programs with the times of their tilings, for models to learn from.

A data set is a file of records (`go_rl.runtime.records`), ``tiles-<target>.jsonl.gz``:
`tile_records` takes them from a folder of `go_rl.costs.tiles.measure.collect`, `save_tiles` writes
them, `gather_tiles` reads programs and tilings out of them. Data sets that ship with the package
lie in ``go_rl/costs/timing/data``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import ReadError, RecordError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.costs.tiles import TileError, TileProgram, Tiles
from go_rl.costs.timing.collector import MODEL, measured_columns
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels
from go_rl.runtime.records import RECORDS, Record, RecordStore, export_records, load_records

SHIPPED = Path(__file__).parents[1] / "data"
ENDING = ".jsonl.gz"
PROGRAM, FAMILY = "program", "family"
"""Fields in the details of a tiling's record."""


@dataclass(frozen=True, eq=False)
class TileData:
    """``P`` programs and ``R`` measurements of their tilings on one target."""

    name: str
    target: str
    programs: tuple[TileProgram, ...]
    families: tuple[str, ...]
    models: tuple[str, ...]
    """[P] network that each program comes from."""
    program: Int64[np.ndarray, "R"]
    """[R] number of the program, ascending."""
    tiles: tuple[Tiles, ...]
    """[R] how its loops were cut."""
    round: Int64[np.ndarray, "R"]
    seconds: Float64[np.ndarray, "R"]
    spread: Float64[np.ndarray, "R"]
    """[R] relative half-width of their 95 % interval."""
    failures: Mapping[str, int]
    """Reasons why a measurement has no time, and how often."""

    @property
    def first(self) -> Bool[np.ndarray, "R"]:
        """[R] measurements of the first round."""
        return np.asarray(self.round == 0)

    @cached_property
    def kernels(self) -> KernelSet:
        """The programs as kernels; traced by JAX on first use, some 20 ms each."""
        return program_kernels(self.programs)

    def repeats(self) -> tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
        """Return [N] measurements of later rounds, and those of the first of the same tilings."""
        keys = list(zip(self.program.tolist(), self.tiles, strict=True))
        known = {keys[i]: i for i in np.flatnonzero(self.first).tolist()}
        later = [i for i in np.flatnonzero(~self.first).tolist() if keys[i] in known]
        return np.array(later, np.int64), np.array([known[keys[i]] for i in later], np.int64)

    def noise(self) -> Float64[np.ndarray, "N"]:
        """Return [N] relative differences, |later / first - 1|, of tilings measured again."""
        later, first = self.repeats()
        return np.abs(self.seconds[later] / self.seconds[first] - 1.0)


def program_kernels(programs: Sequence[TileProgram]) -> KernelSet:
    """Return each program as one kernel; at least one program."""
    graphs = [program.as_graph() for program in programs]
    return join_kernels([cut_kernels(g, np.zeros(g.num_nodes, np.int64))[0] for g in graphs])


def tile_records(source: Path | RecordStore, target: str) -> list[Record]:
    """Return the records of tilings of a target.

    Args:
        source: a folder of `go_rl.costs.tiles.measure.collect`, or a store.
        target: where they were measured.

    Raises:
        RecordError: the records cannot be read.
    """
    if isinstance(source, RecordStore):
        return [record for record in source.find(target) if PROGRAM in record.details]
    with RecordStore(source / RECORDS) as store:
        return tile_records(store, target)


def save_tiles(records: Iterable[Record], path: Path) -> None:
    """Write records of tilings as a data set; times are kept to five digits.

    Raises:
        RecordError: the file cannot be written.
    """
    export_records([_short(record) for record in records], path)


def _short(record: Record) -> Record:
    if record.seconds is None:
        return record
    spread = None if record.spread is None else float(f"{record.spread:.2g}")
    return replace(record, seconds=float(f"{record.seconds:.5g}"), spread=spread)


def load_tile_data(source: str | Path) -> TileData:
    """Read a data set: a path, or the name of one that ships with the package.

    Raises:
        ReadError: no such data set, another version, or damaged.
    """
    path = shipped_or_given(source, SHIPPED, ENDING, "tile data", ReadError)
    try:
        return gather_tiles(load_records(path), path.name.removesuffix(ENDING))
    except RecordError as error:
        raise ReadError(str(error)) from error
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error


def gather_tiles(records: Sequence[Record], name: str = "tiles") -> TileData:
    """Return what records of tilings tell, by program, tiling and round.

    Raises:
        ReadError: no tiling has a time, the records are of several targets, or one of them is no
            tiling.
    """
    targets = sorted({record.target for record in records})
    if len(targets) > 1:
        raise ReadError(f"tilings of several targets ({', '.join(targets)}); give those of one")
    timed = sorted((r for r in records if r.seconds is not None), key=lambda r: r.key)
    if not timed:
        raise ReadError(f"no tiling has a time ({len(records)} records)")
    known = {record.workload: record for record in reversed(timed)}
    number = {hash_: i for i, hash_ in enumerate(sorted(known))}
    ordered = [known[hash_] for hash_ in number]
    return TileData(
        name=name,
        target=targets[0],
        programs=tuple(map(_program, ordered)),
        families=tuple(str(record.details.get(FAMILY, "")) for record in ordered),
        models=tuple(str(record.details.get(MODEL, "")) for record in ordered),
        program=np.array([number[record.workload] for record in timed], np.int64),
        tiles=tuple(map(_tiles, timed)),
        **measured_columns(timed, records),
    )


def _program(record: Record) -> TileProgram:
    text = record.details.get(PROGRAM)
    if not isinstance(text, str):
        raise ReadError(f"the record of {record.workload} has no program: it is of no tiling")
    try:
        program = TileProgram.from_json(text)
    except TileError as error:
        raise ReadError(f"the record of {record.workload}: {error}") from error
    if program.workload != record.workload:
        raise ReadError(f"the record of {record.workload} has another program, {program.title}")
    return program


def _tiles(record: Record) -> Tiles:
    try:
        return Tiles.from_json(record.setting)
    except TileError as error:
        raise ReadError(f"the record of {record.workload}: {error}") from error
