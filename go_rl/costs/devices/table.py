"""The devices that ship by name, and those of a user's file."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from math import log
from pathlib import Path

from go_rl.core.errors import nearest
from go_rl.core.files.own_json import SHEET, read_own_json
from go_rl.core.files.paths import path_of
from go_rl.core.files.strict_json import read_json
from go_rl.costs.devices.data_sheet import MICRO, DataSheet, DeviceError, check_positive, data_sheet

TABLE = Path(__file__).with_name("data_sheets.json")
COMPARED = ("memory_bandwidth", "multiprocessors", "clock_hz", "vector_flops", "l2_bytes")
"""Fields by which a device resembles one of the table."""
NEAR = 0.25
"""Mean difference of their logarithms up to which two devices count as alike."""


@cache
def shipped_devices() -> dict[str, DataSheet]:
    """Return the devices of the table by short name."""
    return {sheet.name: sheet for sheet, _ in _entries()}


def device_names() -> tuple[str, ...]:
    """Return the short names of all devices that ship."""
    return tuple(shipped_devices())


def find_device(name: str) -> DataSheet:
    """Return a device by its short name, an alias, or the vendor's name, in any case.

    Raises:
        DeviceError: there is none; the nearest is named.
    """
    names = _names()
    found = names.get(name.lower())
    if found is None:
        raise DeviceError(
            f"no device {name!r}{nearest(name.lower(), names)} "
            f"Devices: {', '.join(device_names())}; or give a data sheet, FILE.json"
        )
    return shipped_devices()[found]


def load_device(device: str | Path) -> DataSheet:
    """Return a device by name, or from a file with its data sheet.

    A file says nothing of vendor, architecture and power: they are those of the device of the table
    that its name or its numbers resemble most, if any does.

    Raises:
        DeviceError: no such device or file, or the data sheet is wrong.
    """
    path = path_of(device, "a device's name or data sheet", DeviceError)
    if path.suffix != ".json" and not path.is_file():
        return find_device(str(device))
    document = read_own_json(path, SHEET, DeviceError)
    return with_architecture(data_sheet(document, str(path), path.stem))


def with_architecture(sheet: DataSheet) -> DataSheet:
    """Return a data sheet with vendor, architecture and power of the device that it resembles
    most."""
    named = _names().get(sheet.device.lower())
    if named is not None:
        return _like(sheet, shipped_devices()[named])
    nearest_one = min(shipped_devices().values(), key=lambda each: _apart(each, sheet))
    return sheet if _apart(nearest_one, sheet) > NEAR else _like(sheet, nearest_one)


def with_launch(sheet: DataSheet, microseconds: float | None) -> DataSheet:
    """Return a data sheet with what an addition of few elements takes on the host; None: as it is.

    Raises:
        DeviceError: that is no positive number.
    """
    if microseconds is None:
        return sheet
    check_positive(microseconds, "launch_us")
    return replace(sheet, launch_seconds=microseconds * MICRO)


def assumed(sheet: DataSheet) -> tuple[str, ...]:
    """Return what was assumed of a user's device, in sentences."""
    if sheet.like is not None:
        return (f"{sheet.name}: architecture and power are those of {sheet.like}",)
    if sheet.architecture is None:
        return (f"{sheet.name}: no device of the table is like it; its architecture is unknown",)
    return ()


def _like(sheet: DataSheet, alike: DataSheet) -> DataSheet:
    return replace(sheet, vendor=alike.vendor, architecture=alike.architecture,
                   board_watts=alike.board_watts, like=alike.device)  # fmt: skip


def _apart(one: DataSheet, other: DataSheet) -> float:
    left, right = asdict(one), asdict(other)
    return sum(abs(log(left[field] / right[field])) for field in COMPARED) / len(COMPARED)


@cache
def _names() -> dict[str, str]:
    """Short name by every name in lower case."""
    found: dict[str, str] = {}
    for sheet, aliases in _entries():
        for name in (sheet.name, sheet.device, *aliases):
            found[name.lower()] = sheet.name
    return found


@cache
def _entries() -> tuple[tuple[DataSheet, tuple[str, ...]], ...]:
    entries = []
    for entry in read_json(TABLE):
        aliases = tuple(entry.pop("aliases"))
        entry["matrix_flops"] = entry["matrix_flops"] or entry["vector_flops"]
        entries.append((DataSheet(**entry), aliases))
    return tuple(entries)
