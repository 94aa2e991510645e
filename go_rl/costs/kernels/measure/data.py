"""`KernelData`: kernels with their measured times, as one small file that a model learns from.

`gather_kernels` makes it of a folder of `go_rl.costs.kernels.measure.collect`. The data sets that
ship with the package lie in ``go_rl/costs/kernels/data``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from go_rl.core import FREE, ReadError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.costs.kernels.measure.collect import KERNELS
from go_rl.costs.kernels.measure.settings import LAYOUTS
from go_rl.costs.kernels.measure.worker import XLA_COSTS
from go_rl.costs.timing.collector import MODEL, failures_of
from go_rl.costs.timing.core_speed import pace_path, read_pace
from go_rl.graphs.cutting.file_format import load_kernels, save_kernels
from go_rl.graphs.cutting.kernel_set import KernelSet, join_kernels
from go_rl.runtime.records import AS_IT_COMES, RECORDS, Record, RecordStore

VERSION = 1
SHIPPED = Path(__file__).parents[1] / "data"
ROWS = ("kernel", "setting", "round", "seconds", "spread")


@dataclass(frozen=True, eq=False)
class KernelData:
    """``K`` kernels and ``R`` measurements of them on one target."""

    name: str
    target: str
    kernels: KernelSet
    models: tuple[str, ...]
    """[K] model that each kernel was first met in."""
    settings: tuple[str, ...]
    """Distinct settings; the first is "": as it comes."""
    kernel: Int64[np.ndarray, "R"]
    setting: Int64[np.ndarray, "R"]
    """[R] number of the setting."""
    round: Int64[np.ndarray, "R"]
    seconds: Float64[np.ndarray, "R"]
    spread: Float64[np.ndarray, "R"]
    """[R] relative half-width of their 95 % interval."""
    xla: Float64[np.ndarray, "K 3"]
    """[K, 3] FLOP, transcendental functions and bytes accessed of the compiled kernel, as XLA's own
    cost analysis has them; NaN where it does not say."""
    failures: Mapping[str, int]
    """Reasons why a measurement has no time, and how often."""
    processor: str = ""
    """Processor that measured (`go_rl.core.hardware.processor`); "": unknown, or none did."""

    @property
    def plain(self) -> Bool[np.ndarray, "R"]:
        """[R] measurements of kernels as they come, of the first round."""
        return (self.setting == 0) & (self.round == 0)

    def take(self, which: Int[np.ndarray, "J"]) -> KernelData:
        """Return some of the kernels, in this order, each at most once, and all measurements of
        them."""
        place = np.full(self.kernels.num_kernels, FREE)
        place[which] = np.arange(len(which))
        rows = np.flatnonzero(place[self.kernel] != FREE)
        return replace(
            self,
            kernels=self.kernels.take(which),
            models=tuple(self.models[k] for k in which.tolist()),
            xla=self.xla[which],
            **{name: getattr(self, name)[rows] for name in ROWS}
            | {"kernel": place[self.kernel[rows]]},
        )

    def noise(self) -> Float64[np.ndarray, "P"]:
        """Return [P] relative differences, |later / first - 1|, of kernels as they come that were
        measured twice, hours apart."""
        first = plain_seconds(self)
        again = (self.setting == 0) & (self.round > 0) & np.isfinite(first[self.kernel])
        return np.abs(self.seconds[again] / first[self.kernel[again]] - 1.0)


def gather_kernels(folder: Path, target: str, name: str) -> KernelData:
    """Return all measurements of a folder on one target.

    Raises:
        ReadError: nothing was measured there on that target.
        RecordError: the records cannot be read.
    """
    files = sorted((folder / KERNELS).glob("*.npz"))
    with RecordStore(folder / RECORDS) as store:
        records = store.find(target)
        if not records or not files:
            known = ", ".join(store.targets()) or "none"
            raise ReadError(f"{folder}: no kernels measured on {target!r} (targets: {known})")
    loaded = [load_kernels(path) for path in files]
    kernels = join_kernels([each for each, _ in loaded])
    models = [about[MODEL] for each, about in loaded for _ in range(each.num_kernels)]
    timed = {r.workload for r in records if r.seconds is not None}
    first = {h: k for k, h in reversed(list(enumerate(kernels.hashes))) if h in timed}
    kept = np.array(sorted(first.values()), np.int64)
    taken = kernels.take(kept)
    owner = tuple(models[k] for k in kept.tolist())
    rows = _rows(records, {hash_: i for i, hash_ in enumerate(taken.hashes)})
    path = pace_path(folder, target)
    processor = read_pace(path).processor if path.exists() else ""
    return KernelData(name, target, taken, owner, processor=processor, **rows)


def _rows(records: Sequence[Record], place: Mapping[str, int]) -> dict[str, Any]:
    """Columns of `KernelData`, from records."""
    found = [r for r in records if r.workload in place and r.seconds is not None]
    settings = sorted({AS_IT_COMES, *(r.setting for r in found)})
    number = {setting: i for i, setting in enumerate(settings)}
    return {
        "settings": tuple(settings),
        "kernel": np.array([place[r.workload] for r in found], np.int64),
        "setting": np.array([number[r.setting] for r in found], np.int64),
        "round": np.array([r.round for r in found], np.int64),
        "seconds": np.array([r.seconds for r in found], np.float64),
        "spread": np.array([r.spread or 0.0 for r in found], np.float64),
        "xla": _xla(found, place),
        "failures": failures_of(records),
    }


def _xla(records: Sequence[Record], place: Mapping[str, int]) -> Float64[np.ndarray, "K 3"]:
    costs = np.full((len(place), len(XLA_COSTS)), np.nan)
    for record in records:
        if record.setting == AS_IT_COMES:
            said = record.details.get("xla", {})
            costs[place[record.workload]] = [said.get(name, np.nan) for name in XLA_COSTS]
    return costs


def save_kernel_data(data: KernelData, path: Path) -> None:
    """Write a data set; a reader never sees a half-written file."""
    rows = {name: getattr(data, name).tolist() for name in ROWS}
    rows["seconds"] = [float(f"{s:.5g}") for s in rows["seconds"]]
    rows["spread"] = [float(f"{s:.2g}") for s in rows["spread"]]
    about = {
        "version": VERSION, "data": data.name, "target": data.target,
        "processor": data.processor, "models": list(data.models),
        "settings": list(data.settings), "failures": dict(data.failures), "rows": rows,
        "xla": [[x if np.isfinite(x) else None for x in row] for row in data.xla.tolist()],
    }  # fmt: skip
    save_kernels(data.kernels, path, about)


def load_kernel_data(source: str | Path) -> KernelData:
    """Read a data set: a path, or the name of one that ships with the package.

    Raises:
        ReadError: no such data set, another version, or damaged.
    """
    path = shipped_or_given(source, SHIPPED, ".npz", "kernel data", ReadError, "kernels-")
    kernels, about = load_kernels(path)
    if about.get("version") != VERSION:
        raise ReadError(
            f"{path}: kernel data of version {about.get('version')!r}; this version of go_rl reads "
            f"{VERSION}"
        )
    try:
        rows = {n: _column(about["rows"][n], n in ("seconds", "spread")) for n in ROWS}
        return KernelData(
            about["data"], about["target"], kernels, tuple(about["models"]),
            tuple(about["settings"]), xla=np.array(about["xla"], np.float64).reshape(-1, 3),
            failures=about["failures"], processor=about.get("processor", ""), **rows,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise ReadError(f"{path}: damaged kernel data ({error})") from error


def _column(values: Sequence[int | float], fractions: bool) -> np.ndarray:
    return np.array(values, np.float64 if fractions else np.int64)


def plain_seconds(data: KernelData) -> Float64[np.ndarray, "K"]:
    """Return [K] seconds of kernels as they come, of the first round; NaN where there are none."""
    seconds = np.full(data.kernels.num_kernels, np.nan)
    seconds[data.kernel[data.plain]] = data.seconds[data.plain]
    return seconds


def absolute_rows(data: KernelData) -> Int64[np.ndarray, "R"]:
    """Return the measurements of the first round that an absolute model learns from: of kernels as
    they come, and under layouts of their operands (flags change the compiler)."""
    used = np.array([s == AS_IT_COMES or LAYOUTS in json.loads(s) for s in data.settings])
    return np.flatnonzero(used[data.setting] & (data.round == 0))
