"""A data set of tensor programs as one small file: no pickle, and a digest of all it holds.

Loop nests and traces are text that repeats itself; leaf vectors have a few thousand different
numbers. Both are packed by LZMA: some 80 bytes a program.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import ReadError
from go_rl.costs.programs.features import FEATURE_VERSION, PackedAsts
from go_rl.costs.programs.measure.data import ROWS, ProgramData, ProgramTarget
from go_rl.costs.programs.workloads import TaskError, TensorTask
from go_rl.runtime.saved_model import SavedKind

KIND = SavedKind(
    "go_rl-programs", "program data", {"version": 1, "features": FEATURE_VERSION},
    "gather the records again", Path(__file__).parents[1] / "data", "programs-", ReadError,
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
        **{name: _column(name, getattr(data, name)) for name in ROWS},
    }
    manifest = {
        "name": data.name,
        "tasks": [task.to_json() for task in data.tasks],
        "networks": [list(some) for some in data.networks],
        "targets": [[each.device, each.codegen] for each in data.targets],
        "failures": dict(data.failures), "provenance": dict(data.provenance),
    }  # fmt: skip
    KIND.write(path, arrays, manifest)


def load_programs(source: str | Path) -> ProgramData:
    """Read a data set: a path, or the name of one that ships with the package.

    Raises:
        ReadError: no such data set, another version of the file or its features, or damaged.
    """
    with KIND.opened(source) as saved:
        try:
            return _data(saved.manifest, saved.arrays)
        except (TaskError, lzma.LZMAError) as error:
            raise ValueError(error) from error


def _data(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ProgramData:
    first = np.concatenate([[0], np.cumsum(arrays["leaves"], dtype=np.int64)])
    values, kind = arrays["values"], _least_type(len(arrays["values"]))
    number = np.frombuffer(_unpacked(arrays["vectors"]), kind).reshape(-1, int(first[-1])).T
    rows: dict[str, Any] = {
        name: arrays[name].astype(np.float64 if name in DIGITS else np.int64) for name in ROWS
    }
    return ProgramData(
        name=manifest["name"],
        tasks=tuple(TensorTask.from_json(text) for text in manifest["tasks"]),
        networks=tuple(tuple(some) for some in manifest["networks"]),
        targets=tuple(ProgramTarget(*each) for each in manifest["targets"]),
        nests=tuple(_unpacked(arrays["nests"]).decode().split("\n")),
        traces=tuple(_unpacked(arrays["traces"]).decode().split("\0")),
        asts=PackedAsts(
            np.ascontiguousarray(values[number]), arrays["ordering"].astype(np.int64), first
        ),
        failures=manifest["failures"],
        provenance=manifest["provenance"],
        **rows,
    )


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
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
