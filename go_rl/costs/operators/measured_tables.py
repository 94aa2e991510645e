"""`read_measured`: a folder of measured operators, one table for each operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from go_rl.core import ElementType, TrainingError
from go_rl.core.errors import nearest
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.devices import DataSheet, DeviceError, find_device
from go_rl.costs.operators.examples import OperatorExamples, OperatorInputs
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables import OPERATORS, OperatorError, OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES, sizes_of
from go_rl.costs.operators.tables.operator_table import (
    MEASURED,
    check_columns,
    sizes_of_record,
    table_records,
)
from go_rl.costs.operators.type_rates import TypeRates, type_rates
from go_rl.runtime.array_file import DAMAGED, open_packed

TILE = re.compile(r"(\d+)x(\d+)")
LATENCY, IN_GRAPH, DEVICE, KERNEL = "latency_ms", "graph_ms", "device", "kernel"
ENDINGS = (".csv.gz", ".csv")
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
        TrainingError: no folder is given, one has no table, one of a name that is no operator, or
            two of one operator; a table lacks a column, has an unknown one or no rows; or a cell is
            wrong (file, line and column are named).
        DeviceError: a device is not in the table of devices (file and line are named).
    """
    if not folders:
        raise TrainingError("no folder of measured operators is given; name one or several")
    tables = [each for folder in folders for each in _tables(Path(folder))]
    return _joined([_table(*each) for each in tables])


def _tables(folder: Path) -> list[tuple[str, Path, ElementType]]:
    """Operators, files and element types of a folder's tables."""
    if not folder.is_dir():
        raise TrainingError(f"{folder}: no such folder of measured operators")
    tables = [(op, path, element) for element, where in _folders(folder)
              for op, path in _by_operator(where)]  # fmt: skip
    if not tables:
        raise TrainingError(f"{folder}: has no measured operators (such as linear.csv.gz)")
    return tables


def _by_operator(folder: Path) -> Iterator[tuple[str, Path]]:
    """Operators and tables of one folder, in the order of `OPERATORS`."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = next((each for each in ENDINGS if path.name.endswith(each)), None)
        if ending is None or not path.is_file():
            continue
        op = path.name.removesuffix(ending)
        if op not in OPERATORS:
            raise TrainingError(
                f"{path}: {op!r} is no operator{nearest(op, OPERATORS)} Rename the table, or move "
                f"it away. Operators: {', '.join(OPERATORS)}"
            )
        if op in found:
            raise TrainingError(f"{folder}: has {found[op].name} and {path.name}; keep one of them")
        found[op] = path
    return ((op, found[op]) for op in OPERATORS if op in found)


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
    def check_head(head: Sequence[str], path: Path) -> None:
        own = (*sizes_of(op), LATENCY, DEVICE)
        check_columns(head, path, tuple(dict.fromkeys((*own, IN_GRAPH, *SIZES, "op", *MEASURED))))
        for name in own:
            if name not in head:
                raise OperatorError(f"{path}: has no column {name!r}")

    try:
        with open_packed(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = file.read().decode("utf-8-sig")
        lines = [(f"{path}: line {line}", record)
                 for line, record in table_records(text, path, check_head)]  # fmt: skip
        sizes = [sizes_of_record(op, record, where) for where, record in lines]
    except OperatorError as error:
        raise TrainingError(str(error)) from error
    except DAMAGED as error:
        raise TrainingError(f"{path}: cannot be read ({error})") from error
    if not lines:
        raise TrainingError(f"{path}: has no rows, only a head")
    _check_rows(op, lines)
    in_graph = IN_GRAPH if IN_GRAPH in lines[0][1] else None
    return Table(
        op, element,
        {name: np.array([size[name] for size in sizes], np.int64) for name in sizes_of(op)},
        [record[DEVICE] for _, record in lines],
        MILLI * np.array([_milliseconds(*line, LATENCY) for line in lines]),
        MILLI * np.array([_milliseconds(*line, in_graph) for line in lines]),
        np.array([_tile(record.get(KERNEL, "")) for _, record in lines], np.int64),
    )  # fmt: skip


def _check_rows(op: str, lines: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Raise an error that names the line of an operator that is not the file's, or of a device that
    is unknown."""
    known: set[str] = set()
    for where, record in lines:
        if record.get("op", op) != op:
            raise TrainingError(f"{where}: op must be {op!r}, as the file is named, not "
                                f"{record['op'][:40]!r}")  # fmt: skip
        if (name := record[DEVICE]) in known:
            continue
        try:
            find_device(name)
        except DeviceError as error:
            raise DeviceError(f"{where}: {DEVICE}: {error}") from error
        known.add(name)


def _milliseconds(where: str, record: Mapping[str, str], column: str | None) -> float:
    """A time in milliseconds; NaN without a column."""
    if column is None:
        return float("nan")
    text = record[column]
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 < number < inf:
        raise TrainingError(
            f"{where}: {column} must be a positive number of milliseconds, not {text[:40]!r}"
        )
    return number


@cache
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
