"""`read_measured`: a folder of measured operators, one table for each operator."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from go_rl.core import ElementType, TrainingError
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.devices import DataSheet, find_device
from go_rl.costs.operators.examples import OperatorExamples, OperatorInputs
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables import OPERATORS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import LETTERS, SIZES, sizes_of
from go_rl.costs.operators.type_rates import TypeRates, type_rates
from go_rl.runtime.array_file import DAMAGED, open_packed

TILE = re.compile(r"(\d+)x(\d+)")
LATENCY, IN_GRAPH, DEVICE, KERNEL = "latency_ms", "graph_ms", "device", "kernel"
MILLI = 1e-3


def read_measured(*folders: str | Path) -> OperatorExamples:
    """Return the rows of all tables ``OPERATOR.csv`` or ``.csv.gz`` in one folder or several, and
    of those in folders within that are named after an element type, such as ``bfloat16``; others
    are of float32.

    Columns are the operator's sizes, ``latency_ms``, ``device`` (a name of the table of devices)
    and, where known, ``graph_ms`` (of one call among many of one CUDA graph) and ``kernel``, whose
    name tells the tile.

    Args:
        folders: at least one.

    Raises:
        TrainingError: no folder is given, one has no table, or a table lacks a column or has a row
            that is malformed.
        DeviceError: a device is not in the table of devices.
    """
    if not folders:
        raise TrainingError("no folder of measured operators is given; name one or several")
    tables = [each for folder in folders for each in _tables(Path(folder))]
    return _joined([_table(*each) for each in tables])


def _tables(folder: Path) -> list[tuple[str, Path, ElementType]]:
    """Operators, files and element types of a folder's tables."""
    if not folder.is_dir():
        raise TrainingError(f"{folder}: no such folder of measured operators")
    tables = [
        (op, path, element)
        for element, where in _folders(folder)
        for op in OPERATORS
        for path in (where / f"{op}.csv.gz", where / f"{op}.csv")
        if path.is_file()
    ]
    if not tables:
        raise TrainingError(f"{folder}: has no measured operators (such as linear.csv.gz)")
    return tables


def _folders(folder: Path) -> list[tuple[ElementType, Path]]:
    """A folder, and those within that are named after types."""
    within = [(each, folder / each.label) for each in ElementType if each]
    own = next((each for each in ElementType if each.label == folder.name), ElementType.FLOAT32)
    return [(own, folder), *((each, path) for each, path in within if path.is_dir())]


class Table(NamedTuple):
    """One file."""

    op: str
    element: ElementType
    sizes: dict[str, np.ndarray]
    devices: list[str]
    seconds: np.ndarray
    in_graph: np.ndarray
    tile: np.ndarray


def _table(op: str, path: Path, element: ElementType) -> Table:
    try:
        packed = path.suffix == ".gz"
        with io.TextIOWrapper(open_packed(path) if packed else path.open("rb"), "utf-8") as file:
            head, *lines = list(csv.reader(file)) or [[]]
            head = [LETTERS.get(name, name) for name in head]
    except (*DAMAGED, csv.Error) as error:
        raise TrainingError(f"{path}: cannot be read ({error})") from error
    for name in (*sizes_of(op), LATENCY, DEVICE):
        if name not in head:
            raise TrainingError(f"{path}: has no column {name!r}")
    if not lines or any(len(line) != len(head) for line in lines):
        raise TrainingError(f"{path}: is empty, or a row has other columns than its head")
    column = dict(zip(head, zip(*lines, strict=True), strict=True))
    times = [name for name in (LATENCY, IN_GRAPH) if name in column]
    try:
        numbers = {name: np.array(column[name], np.float64) for name in (*sizes_of(op), *times)}
    except ValueError as error:
        raise TrainingError(f"{path}: {error}") from error
    for name in times:
        if not (np.isfinite(numbers[name]).all() and (numbers[name] > 0).all()):
            raise TrainingError(f"{path}: {name} must be positive")
    seconds = numbers.pop(LATENCY) * MILLI
    in_graph = numbers.pop(IN_GRAPH, np.full(len(lines), np.nan)) * MILLI
    sizes = {name: each.astype(np.int64) for name, each in numbers.items()}
    kernels = column.get(KERNEL, ("",) * len(lines))
    tiles = {kernel: _tile(kernel) for kernel in set(kernels)}
    tile = np.array([tiles[kernel] for kernel in kernels], np.int64)
    return Table(op, element, sizes, list(column[DEVICE]), seconds, in_graph, tile)


def _tile(kernel: str) -> int:
    found = TILE.search(kernel)
    tile = tuple(map(int, found.groups())) if found else None
    return TILES.index(tile) if tile in TILES else UNKNOWN_TILE


def _joined(tables: Sequence[Table]) -> OperatorExamples:
    names = np.concatenate([np.array(table.devices) for table in tables])
    distinct, device = np.unique(names, return_inverse=True)
    counts = [len(table.seconds) for table in tables]
    op = np.repeat([table.op for table in tables], counts)
    sizes = {
        name: np.concatenate(
            [table.sizes.get(name, np.zeros(n, np.int64)) for table, n
             in zip(tables, counts, strict=True)]
        )
        for name in SIZES
    }  # fmt: skip
    sheets = tuple(find_device(str(name)) for name in distinct)
    types = np.repeat(np.array([table.element for table in tables], np.int8), counts)
    device = device.astype(np.int64)
    inputs = OperatorInputs(OperatorRows(op, sizes), sheets, device, _rates(types, sheets, device))
    return OperatorExamples(
        inputs,
        *(np.concatenate([getattr(table, name) for table in tables])
          for name in ("seconds", "tile", "in_graph")),
    )  # fmt: skip


def _rates(types: np.ndarray, sheets: Sequence[DataSheet], device: np.ndarray) -> TypeRates | None:
    """Rates and widths of rows, by those of each one's device."""
    found = [type_rates(types, dict(rates_of(sheet.name))) for sheet in sheets]
    if found[0] is None:  # all are of float32, on every device alike
        return None
    rate = np.stack([each.rate for each in found if each])[device, np.arange(len(device))]
    return replace(found[0], rate=rate)
