"""`read_operators`: a table of operators, ``.csv`` or ``.csv.gz``."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

import numpy as np

from go_rl.core.errors import nearest
from go_rl.core.files.paths import check_readable
from go_rl.costs.operators.tables.operator_rows import (
    LETTERS,
    OPERATORS,
    SIZES,
    WINDOWS,
    OperatorError,
    OperatorRows,
    sizes_of,
)

MEASURED = ("latency_ms", "device", "kernel", "grid_x", "grid_y", "grid_z",
            "block_x", "block_y", "block_z")  # fmt: skip
"""Columns of measured tables; prices do not depend on them."""
TYPE = "dtype"
FLOAT32 = ("", "float32", "fp32", "torch.float32")
LARGEST = 1 << 40
"""Largest size."""
MOST_ELEMENTS = 1 << 50
"""Most elements of a result."""
MOST_ROWS = 1_000_000
MOST_CHARACTERS = 1 << 28


def read_operators(path: str | Path) -> OperatorRows:
    """Return the operators of a table in its order.

    Columns are ``op`` and `SIZES` (or `LETTERS`), those of an operator filled and others empty;
    `MEASURED` columns may be there.

    Raises:
        OperatorError: the file cannot be read, a column is unknown or missing, an operator is
            unknown (the nearest is named), a size is missing, negative, no whole number, or one
            that the operator does not have, a type is other than float32, or the table is empty.
    """
    path = Path(path)
    ops: list[str] = []
    sizes: list[list[int]] = []
    for line, record in table_records(_text(path), path, _check_head):
        op, found = _operator(record, f"{path}: line {line}")
        ops.append(op)
        sizes.append(found)
        if len(ops) > MOST_ROWS:
            raise OperatorError(f"{path}: has more than {MOST_ROWS:,} rows")
    if not ops:
        raise OperatorError(f"{path}: has no operators, only a head")
    columns = np.array(sizes, np.int64).reshape(-1, len(SIZES)).T
    return OperatorRows(np.array(ops), dict(zip(SIZES, columns, strict=True)))


def table_records(
    text: str, path: Path, check_head: Callable[[Sequence[str], Path], None]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the lines of a table by number, each as columns by name; empty ones are left out.

    Args:
        text: of the table; its columns may have NeuSight's `LETTERS`.
        path: of the table, for messages.
        check_head: raises an `OperatorError` for names of columns.

    Raises:
        OperatorError: the text is no table, a line has more or fewer cells than the head, or the
            head is refused.
    """
    try:
        lines = csv.reader(text.splitlines(), strict=True)
        head = [LETTERS.get(name.strip(), name.strip()) for name in next(lines, [])]
        check_head(head, path)
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(head):
                raise OperatorError(
                    f"{path}: line {lines.line_num}: has {len(cells)} cells, the head {len(head)}"
                )
            yield lines.line_num, dict(zip(head, (cell.strip() for cell in cells), strict=True))
    except csv.Error as error:
        raise OperatorError(f"{path}: is no table ({error})") from error


def _text(path: Path) -> str:
    try:
        check_readable(path)
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            content = file.read(MOST_CHARACTERS + 1)
        if len(content) > MOST_CHARACTERS:
            raise OperatorError(f"{path}: is larger than {MOST_CHARACTERS >> 20} MiB")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path}: is no text (byte {error.start})") from error
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise OperatorError(f"{path}: cannot be read ({why})") from error


def _check_head(head: Sequence[str], path: Path) -> None:
    """Raise an `OperatorError` for columns that are unknown, missing or there twice."""
    check_columns(head, path, ("op", *SIZES, *MEASURED, TYPE))
    if "op" not in head:
        raise OperatorError(f"{path}: has no column 'op'")


def check_columns(head: Sequence[str], path: Path, known: Sequence[str]) -> None:
    """Raise an `OperatorError` for columns that are not known, without a name or there twice."""
    if not any(head):
        raise OperatorError(f"{path}: is empty; its first line names the columns: "
                            f"{', '.join(known[:2])}, …")  # fmt: skip
    for place, name in enumerate(head, 1):
        if not name:
            raise OperatorError(f"{path}: column {place} has no name; an index is no column "
                                "(pandas: to_csv(path, index=False))")  # fmt: skip
        if name not in known:
            columns = [each for each in known if each not in (*MEASURED, TYPE)]
            raise OperatorError(
                f"{path}: unknown column {name!r}{nearest(name, known)} "
                f"Columns: {', '.join(columns)}"
            )
        if head.count(name) > 1:
            raise OperatorError(f"{path}: column {name!r} is there twice")


def _operator(record: Mapping[str, str], where: str) -> tuple[str, list[int]]:
    """The operator of a line, and its sizes in the order of `SIZES`."""
    op = record["op"]
    if op not in OPERATORS:
        raise OperatorError(
            f"{where}: unknown operator {op!r}{nearest(op, OPERATORS)} "
            f"Operators: {', '.join(OPERATORS)}"
        )
    if record.get(TYPE, "") not in FLOAT32:
        raise OperatorError(f"{where}: {op}: a table is priced in one element type, stated by "
                            f"--element-type, and not by row as {record[TYPE]!r}")  # fmt: skip
    size = sizes_of_record(op, record, where)
    return op, list(size.values())


def sizes_of_record(op: str, record: Mapping[str, str], where: str) -> dict[str, int]:
    """Return each of `SIZES` of an operator in a line of a table; 0: the operator has none such.

    Args:
        op: of `OPERATORS`.
        record: cells by column.
        where: file and line, for messages.

    Raises:
        OperatorError: a size is missing, no whole number, out of range, contradicts another, or is
            one that the operator does not have and is filled with other than 0.
    """
    needed = sizes_of(op)
    size = dict.fromkeys(SIZES, 0)
    for name in SIZES:
        if name in needed:
            if name not in record:
                raise OperatorError(f"{where}: {op} needs the column {name!r}, which is missing")
            size[name] = _size(record[name], name, f"{where}: {op}")
        elif not _is_void(record.get(name, "")):
            raise OperatorError(
                f"{where}: {op}: it has no {name}, but the cell has {record[name][:40]!r}; leave "
                f"it empty{_other(op, name)}"
            )
    _check_reach(op, size, where)
    return size


def _is_void(text: str) -> bool:
    """Whether a cell is empty or 0."""
    try:
        return not text or float(text) == 0
    except ValueError:
        return False


def _other(op: str, name: str) -> str:
    """Which operator has a size that a convolution does not have."""
    if (op, name) != ("conv", "groups"):
        return ""
    return ", or name the operator 'grouped', which has groups"


def _size(text: str, name: str, where: str) -> int:
    """A positive whole number (padding may be 0); ``64.0`` is one."""
    if not text:
        raise OperatorError(f"{where}: {name} is missing")
    try:
        number = float(text)
    except ValueError:
        raise OperatorError(f"{where}: {name} must be a number, not {text[:40]!r}") from None
    if LARGEST < number < inf:
        raise OperatorError(f"{where}: {name} must be at most {LARGEST:,}, not {text[:40]}")
    least = 0 if name in ("padding", "causal") else 1
    if not least <= number <= LARGEST or number != int(number):
        kind = "zero or a positive" if least == 0 else "a positive"
        raise OperatorError(f"{where}: {name} must be {kind} whole number, not {text[:40]}")
    return int(number)


def _check_reach(op: str, size: Mapping[str, int], where: str) -> None:
    """Raise an `OperatorError` for sizes that do not fit together, or that no device holds."""
    if "kernel_size" in sizes_of(op):
        reach = size["input_size"] + 2 * size["padding"]
        if size["kernel_size"] > reach:
            raise OperatorError(
                f"{where}: {op}: kernel_size {size['kernel_size']} is larger than the padded "
                f"input, {reach}"
            )
        if op in WINDOWS and size["input_channel"] != size["output_channel"]:
            raise OperatorError(
                f"{where}: {op}: input_channel {size['input_channel']} and output_channel "
                f"{size['output_channel']} must be equal: it makes a channel of each"
            )
        result = size["batch"] * size["output_channel"] * reach**2
        if op == "grouped" and size["input_channel"] % size["groups"]:
            raise OperatorError(
                f"{where}: grouped: input_channel {size['input_channel']} is no multiple of groups "
                f"{size['groups']}"
            )
        if op == "grouped" and size["output_channel"] % size["groups"]:
            raise OperatorError(
                f"{where}: grouped: output_channel {size['output_channel']} is no multiple of "
                f"groups {size['groups']}"
            )
    elif op in ("bmm", "linear"):
        result = size["batch"] * size["rows"] * size["columns"]
    elif op == "attention":
        if size["causal"] > 1:
            raise OperatorError(f"{where}: attention: causal must be 0 or 1, not {size['causal']}")
        if size["heads"] % size["groups"]:
            raise OperatorError(
                f"{where}: attention: heads {size['heads']} is no multiple of groups "
                f"{size['groups']}, the query heads that share one head of keys"
            )
        result = size["batch"] * size["heads"] * size["queries"] * size["keys"]
    else:
        result = size["batch"] * size["width"]
    if result > MOST_ELEMENTS:
        raise OperatorError(f"{where}: {op}: its result has {result:.3g} elements, too many")
