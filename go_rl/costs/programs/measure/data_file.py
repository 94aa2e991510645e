"""A data set of tensor programs as one small file: no pickle, and a digest of all it holds.

Loop nests and traces are text that repeats itself; leaf vectors have a few thousand different
numbers. Both are packed by LZMA: some 80 bytes a program.

A data set of several processors holds its programs once: ``NAME.npz`` has tasks, loop nests, traces
and features, ``NAME/TARGET.npz`` the measurements of one processor, a shard, which refers to these
by number (`experiments.programs.program_shards` adds one).
"""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import ReadError
from go_rl.core.errors import nearest
from go_rl.costs.programs.features import FEATURE_VERSION, PackedAsts
from go_rl.costs.programs.measure.data import ROWS, MachineTable, ProgramData, ProgramTarget
from go_rl.costs.programs.workloads import TaskError, TensorTask
from go_rl.costs.programs.workloads.drawn_programs import CODEGEN, Drawing
from go_rl.runtime.saved_model import SavedKind

KIND = SavedKind(
    "go_rl-programs", "program data", {"version": 1, "features": FEATURE_VERSION},
    "gather the records again", Path(__file__).parents[1] / "data", "programs-", ReadError,
)  # fmt: skip
TIMES = SavedKind(
    "go_rl-program-times", "measurements of programs", {"version": 1}, "gather the records again",
    error=ReadError,
)  # fmt: skip
MOST_BYTES = 1 << 30
"""A packed array that unpacks to more is refused."""
DIGITS = {"seconds": "{:.5g}", "spread": "{:.2g}", "away": "{:.2g}"}
"""Digits to which numbers are kept."""


def save_programs(data: ProgramData, path: Path) -> None:
    """Write a data set; a reader never sees half of it.

    Raises:
        CheckpointError: the file cannot be written.
    """
    values, index = np.unique(data.asts.vectors, return_inverse=True)
    number = index.reshape(data.asts.vectors.shape).astype(_least_type(len(values)))
    arrays = {
        "nests": _packed("\n".join(data.nests).encode()),
        "traces": _packed("\0".join(data.traces).encode()),
        "values": values,
        "vectors": _packed(np.ascontiguousarray(number.T).tobytes()),
        "ordering": data.asts.ordering.astype(np.uint32),
        "leaves": data.asts.leaves.astype(np.uint32),
        **row_arrays({name: getattr(data, name) for name in ROWS}),
        **_machine_arrays(data),
    }
    manifest = {
        "name": data.name,
        "tasks": [task.to_json() for task in data.tasks],
        "networks": [list(some) for some in data.networks],
        "targets": [[each.device, each.codegen] for each in data.targets],
        "failures": dict(data.failures), "provenance": dict(data.provenance),
    }  # fmt: skip
    KIND.write(path, arrays, manifest)


def save_times(path: Path, data: ProgramData, rows: Mapping[str, np.ndarray]) -> None:
    """Write a shard.

    Args:
        path: of the shard.
        data: targets, failures and provenance.
        rows: `ROWS`, with the numbers of the data set's programs.

    Raises:
        CheckpointError: the file cannot be written.
    """
    manifest = {
        "targets": [[each.device, each.codegen] for each in data.targets],
        "failures": dict(data.failures), "provenance": dict(data.provenance),
    }  # fmt: skip
    TIMES.write(path, row_arrays(rows), manifest)


def load_programs(source: str | Path, devices: Sequence[str] | None = None) -> ProgramData:
    """Read a data set: a path, or the name of one that ships with the package.

    Args:
        source: of the programs.
        devices: of a data set of several processors those whose shards are read; None: all.

    Raises:
        ReadError: no such data set or shard, another version of the file or its features, or
            damaged.
    """
    with KIND.opened(source) as saved:
        try:
            programs, path = _data(saved.manifest, saved.arrays), saved.path
        except (TaskError, lzma.LZMAError) as error:
            raise ValueError(error) from error
    shards = shard_paths(path)
    missing = sorted(set(devices or ()) - set(shards))
    if missing:
        raise ReadError(
            f"{path}: no shard of {missing[0]!r}{nearest(missing[0], shards)} There are: "
            f"{', '.join(shards) or 'none'}"
        )
    for device in shards if devices is None else devices:
        programs = _with_times(programs, shards[device])
    return programs


def shard_paths(programs: Path) -> dict[str, Path]:
    """Return the shards of a data set, by device."""
    return {path.stem: path for path in sorted(programs.with_suffix("").glob("*.npz"))}


def shipped_programs(name: str, draws: int, device: str) -> dict[tuple[str, str], str]:
    """Return the loop nests that a processor's shard of a data set that ships has, by workload and
    setting of their records; none where there is no such data set or shard.

    Args:
        name: of the data set.
        draws: schedules of a drawing.
        device: target of the records.

    Raises:
        ReadError: the shard is damaged.
    """
    path = Path(f"{KIND.shipped}/{name}.npz")
    if device not in shard_paths(path):
        return {}
    data = load_programs(path, [device])
    found = {}
    for task, target, draw, nest in zip(data.task, data.target, data.draw, data.nest, strict=True):
        level = data.targets[target].codegen
        drawing, place = Drawing.of_number(data.tasks[task], level, draws, int(draw))
        key = drawing.task.workload, drawing.setting(place)
        found[key] = data.nests[nest]
    return found


def _with_times(data: ProgramData, path: Path) -> ProgramData:
    """Return a data set with the measurements of a shard besides."""
    with TIMES.opened(path) as saved:
        rows, told = _rows(saved.arrays), saved.manifest["provenance"]
        for name, known in (("task", data.tasks), ("nest", data.nests), ("trace", data.traces)):
            if int(rows[name].max(initial=0)) >= len(known):
                raise ValueError(f"a {name} that {data.name} does not have")
        rows["target"] = rows["target"] + len(data.targets)
        targets = tuple(ProgramTarget(*each) for each in saved.manifest["targets"])
        failures = Counter(data.failures) + Counter(saved.manifest["failures"])
        provenance = {
            name: {**data.provenance.get(name, {}), **each} for name, each in told.items()
        }
    joined = {name: np.concatenate([getattr(data, name), rows[name]]) for name in ROWS}
    return replace(
        data, targets=data.targets + targets, failures=dict(sorted(failures.items())),
        provenance=provenance, **joined,
    )  # fmt: skip


def row_arrays(rows: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return `ROWS` as they are kept."""
    return {name: _column(name, rows[name]) for name in ROWS}


def _rows(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: arrays[name].astype(np.float64 if name in DIGITS else np.int64) for name in ROWS}


def _data(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ProgramData:
    first = np.concatenate([[0], np.cumsum(arrays["leaves"], dtype=np.int64)])
    values, kind = arrays["values"], _least_type(len(arrays["values"]))
    number = np.frombuffer(_unpacked(arrays["vectors"]), kind).reshape(-1, int(first[-1])).T
    nests = tuple(_unpacked(arrays["nests"]).decode().split("\n"))
    return ProgramData(
        name=manifest["name"],
        tasks=tuple(TensorTask.from_json(text) for text in manifest["tasks"]),
        networks=tuple(tuple(some) for some in manifest["networks"]),
        targets=tuple(ProgramTarget(*each) for each in manifest["targets"]),
        nests=nests,
        traces=tuple(_unpacked(arrays["traces"]).decode().split("\0")),
        asts=PackedAsts(
            np.ascontiguousarray(values[number]), arrays["ordering"].astype(np.int64), first
        ),
        failures=manifest["failures"],
        provenance=manifest["provenance"],
        machine=_machine_table(arrays, nests),
        **_rows(arrays),
    )


def _machine_arrays(data: ProgramData) -> dict[str, np.ndarray]:
    """Numbers of machine code: which nest, which level of `CODEGEN`, and [numbers, programs];
    nothing where none was read."""
    if not data.machine:
        return {}
    place, levels = {nest: i for i, nest in enumerate(data.nests)}, list[str](CODEGEN)
    rows = sorted((place[nest], levels.index(level), row)
                  for (nest, level), row in data.machine.items())  # fmt: skip
    numbers = np.array([row for *_, row in rows], np.float16)
    return {
        "machine": _packed(np.ascontiguousarray(numbers.T).tobytes()),
        "machine_nest": np.array([nest for nest, *_ in rows], np.uint32),
        "machine_level": np.array([level for _, level, _ in rows], np.uint8),
    }


def _machine_table(arrays: Mapping[str, np.ndarray], nests: tuple[str, ...]) -> MachineTable:
    if "machine" not in arrays:
        return {}
    nest, levels = arrays["machine_nest"].tolist(), list[str](CODEGEN)
    numbers = np.frombuffer(_unpacked(arrays["machine"]), np.float16).reshape(-1, len(nest))
    rows = zip(nest, arrays["machine_level"].tolist(), numbers.T.astype(np.float32), strict=True)
    return {(nests[i], levels[level]): row for i, level, row in rows}


def _packed(content: bytes) -> np.ndarray:
    return np.frombuffer(lzma.compress(content, preset=9), np.uint8)


def _unpacked(packed: np.ndarray) -> bytes:
    reader = lzma.LZMADecompressor()
    content = reader.decompress(packed.tobytes(), MOST_BYTES)
    if not reader.eof:
        raise ValueError(f"an array unpacks to more than {MOST_BYTES:,} bytes, or is cut off")
    return content


def _least_type(count: int) -> type[np.unsignedinteger]:
    return np.uint16 if count <= 1 << 16 else np.uint32


def _column(name: str, numbers: np.ndarray) -> np.ndarray:
    if name in DIGITS:
        return np.array([float(DIGITS[name].format(each)) for each in numbers.tolist()])
    least, most = (np.min_scalar_type(int(each)) for each in
                   (numbers.min(initial=0), numbers.max(initial=0)))  # fmt: skip
    return numbers.astype(np.promote_types(least, most))
