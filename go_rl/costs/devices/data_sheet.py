"""`DataSheet`: what a vendor states of a GPU, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from go_rl.core import GoRLError
from go_rl.core.errors import nearest
from go_rl.core.files.strict_json import shown


class DeviceError(GoRLError):
    """A device is unknown, or its data sheet is wrong."""


@dataclass(frozen=True)
class DataSheet:
    """One GPU; rates are peaks in float32 without TF32."""

    name: str
    """Short name in the table; of a user's own device what its file says."""
    device: str
    """Device name as the vendor writes it."""
    vendor: str | None
    """NVIDIA or AMD; None: unknown."""
    architecture: str | None
    """Name of the architecture, such as ``volta``; None: unknown."""
    memory_bytes: float
    memory_bandwidth: float
    """Bytes per second."""
    multiprocessors: int
    cores_per_multiprocessor: int
    """Cores of a multiprocessor, as the data sheet counts them; no rate follows from it."""
    clock_hz: float
    vector_flops: float
    """FLOP per second of the vector units."""
    matrix_flops: float
    """FLOP per second of the units that compute products: the vector units where a device has no
    others for float32."""
    l2_bytes: float
    board_watts: float | None = None
    """Power that the board may take; None: not stated."""
    launch_seconds: float | None = None
    """Launch time of the host: seconds of an element-wise addition of few elements; None: not
    stated."""
    like: str | None = None
    """Device of the table whose vendor, architecture and power a user's file takes over."""


FIELDS = {
    "Dev_Mem": ("memory_bytes", 1e9),
    "Mem_Bw": ("memory_bandwidth", 1e9),
    "Num_Sm": ("multiprocessors", 1),
    "Core_Per_SM": ("cores_per_multiprocessor", 1),
    "Freq": ("clock_hz", 1e6),
    "L2Cache": ("l2_bytes", 1e6),
}
"""Fields of a user's file that every device has, our names and the factor to SI units."""
ONE_PEAK, TWO_PEAKS = ("SingleFLOPs",), ("SingleFLOPsMM", "SingleFLOPsVEC")
"""Peak GFLOP/s: of all units, or of matrix and vector units."""
WHOLE = ("Num_Sm", "Core_Per_SM")
DEVICE, LAUNCH = "Device", "Launch_us"
"""Fields that may be missing: the name; microseconds that an addition of few elements takes."""
MICRO = 1e-6
SMALLEST, LARGEST = 1e-6, 1e12
"""Bounds of all fields."""


def data_sheet(document: Any, where: str, name: str) -> DataSheet:
    """Return the data sheet in a JSON object of a user.

    Args:
        document: parsed JSON; units are GB, GB/s, MHz, GFLOP/s and MB.
        where: file, for messages.
        name: of the device if the file has no ``Device``.

    Raises:
        DeviceError: a field is missing, unknown, or no positive number.
    """
    if not isinstance(document, Mapping):
        raise DeviceError(f"{where}: a data sheet is one JSON object, not {shown(document)}")
    known = (DEVICE, LAUNCH, *FIELDS, *ONE_PEAK, *TWO_PEAKS)
    inner = [key for key, value in document.items() if isinstance(value, Mapping)]
    if inner and not any(field in document for field in known):
        raise DeviceError(f"{where}: holds data sheets by name ({shown(inner[0])}); give the inner "
                          "object of one device")  # fmt: skip
    for field in document:
        if field not in known:
            raise DeviceError(
                f"{where}: unknown field {field!r}{nearest(field, known)} "
                f"Fields: {', '.join(known)}"
            )
    peaks = _peaks(document, where)
    for field in (*FIELDS, *peaks, *([LAUNCH] if LAUNCH in document else [])):
        _check(document, field, where)
    title = document.get(DEVICE, name)
    if not isinstance(title, str) or not title.strip():
        raise DeviceError(f"{where}: {DEVICE} must be a name, not {shown(title)}")
    values = {ours: document[theirs] * factor for theirs, (ours, factor) in FIELDS.items()}
    matrix, vector = (document[each] * 1e9 for each in (peaks[0], peaks[-1]))
    return DataSheet(
        name=title, device=title, vendor=None, architecture=None,
        matrix_flops=matrix, vector_flops=vector,
        launch_seconds=document[LAUNCH] * MICRO if LAUNCH in document else None, **values,
    )  # fmt: skip


def _peaks(document: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The fields in which the peaks stand: all units, or matrix and vector units."""
    has_two = [field for field in TWO_PEAKS if field in document]
    if has_two and ONE_PEAK[0] in document:
        raise DeviceError(
            f"{where}: has both {ONE_PEAK[0]} and {has_two[0]}; give {ONE_PEAK[0]} alone, "
            f"or {' and '.join(TWO_PEAKS)}"
        )
    if not has_two and ONE_PEAK[0] not in document:
        raise DeviceError(
            f"{where}: has no {ONE_PEAK[0]} (peak float32 GFLOP/s), nor {' and '.join(TWO_PEAKS)}"
        )
    return TWO_PEAKS if has_two else ONE_PEAK


def check_positive(value: Any, what: str) -> None:
    """Raise a `DeviceError` unless a value is a positive number that some field could have."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not isfinite(value) or value <= 0:
        raise DeviceError(f"{what} must be a positive number, not {shown(value)}")
    if not SMALLEST <= value <= LARGEST:
        raise DeviceError(f"{what} must be from {SMALLEST:g} to {LARGEST:g}, not {shown(value)}")


def _check(document: Mapping[str, Any], field: str, where: str) -> None:
    """Raise a `DeviceError` unless a field is a positive number, whole where it counts."""
    if field not in document:
        raise DeviceError(f"{where}: has no {field}")
    value = document[field]
    check_positive(value, f"{where}: {field}")
    if field in WHOLE and value != int(value):
        raise DeviceError(f"{where}: {field} must be a whole number, not {shown(value)}")
