"""Features of devices that predictors of tensor programs read: two named sets over one table.

`CDMPP_FEATURES` are those of CDMPP's released code, of which Table 2 of its paper names four
(`CDMPP_TABLE`); `TRANSFER_FEATURES` are Table 2 of "Transfer Learning Across Heterogeneous Features
For Efficient Tensor Program Generation". The table (``device_features.json``, SI units, one core
for processors that were measured with one) holds the devices of both papers and the processors met;
``null`` is unknown and becomes NaN, which networks mask. CDMPP's bandwidths of processors are
gigabits a second; that of Graviton2 is one of a disk and left out. A shared memory of a GPU's
multiprocessor counts as its third level of cache, as in CDMPP's code.

RTX A4000 and A6000 are from NVIDIA's data sheets and its CUDA guide (compute capability 8.6);
Radeon PRO W6600 from AMD's product page and RDNA 2 instruction set guide: its 32 MB of Infinity
Cache have no field. ``mi250x-gcd`` is one of the two dies of an Instinct MI250X, on which a kernel
runs: halves of the numbers of AMD's product page, caches of its CDNA 2 white paper. Peaks are
those of vector units in float32.

The two processors of AMD are one core of an EPYC 9004 (family 25 model 17, Zen 4) and of an EPYC
9005 (family 26 model 2, Zen 5) at the clock that machines state; a cycle has 32 and 64 FLOP: two
fused multiply-adds of 256 bits, and of 512.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isfinite, log2, nan
from pathlib import Path
from typing import Any

from go_rl.core.errors import nearest
from go_rl.core.files.own_json import read_own_json
from go_rl.core.files.strict_json import read_json, shown
from go_rl.costs.devices.data_sheet import DeviceError

TABLE = Path(__file__).with_name("device_features.json")
CLASS = "class"
CDMPP_TABLE = ("clock_hz", "memory_bytes", "memory_bandwidth", "cores")
CDMPP_FEATURES = (
    "clock_hz", "memory_bytes", "l3_bytes", "l2_bytes", "l1_bytes", "memory_bandwidth",
    "peak_flops", "cores",
)  # fmt: skip
TRANSFER_FEATURES = (
    "cache_line_bytes", "max_local_memory_per_block", "max_shared_memory_per_block",
    "max_threads_per_block", "max_vthread_extent", "cores", "vector_bytes", "warp_size",
)  # fmt: skip
FEATURE_SETS: Mapping[str, tuple[str, ...]] = {
    "cdmpp": CDMPP_FEATURES, "cdmpp-table": CDMPP_TABLE, "transfer": TRANSFER_FEATURES,
}  # fmt: skip
"""Named sets."""
FIELDS = tuple(dict.fromkeys((*CDMPP_FEATURES, *TRANSFER_FEATURES)))
LARGEST = 1e18
"""No field is as large."""


def device_numbers(
    name: str, extended: str | Path | None = None, features: str = "cdmpp"
) -> list[float]:
    """Return features of a device, log2 of SI units, in the order of a named set; NaN where
    unknown, as all are of a device that no table has.

    Args:
        name: of the device, as in the records.
        extended: JSON file of a user, ``{name: {field: number or null}}``, that extends the table.
        features: one of `FEATURE_SETS`.

    Raises:
        DeviceError: there is no such set, or the file is malformed.
    """
    if features not in FEATURE_SETS:
        raise DeviceError(
            f"no set of device features {features!r}{nearest(features, FEATURE_SETS)}"
        )
    known = _table() if extended is None else {**_table(), **_of_user(Path(extended))}
    found = known.get(name.lower(), {})
    values = [found.get(field) for field in FEATURE_SETS[features]]
    return [nan if value is None else log2(value) for value in values]


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    return read_json(TABLE)


def _of_user(path: Path) -> dict[str, Mapping[str, Any]]:
    document = read_own_json(path, "features of devices (docs/programs.md)", DeviceError)
    if not isinstance(document, Mapping):
        raise DeviceError(f"{path}: device features are one JSON object, {{name: fields}}")
    for name, fields in document.items():
        _check(path, name, fields)
    return {name.lower(): fields for name, fields in document.items()}


def _check(path: Path, name: str, fields: Any) -> None:
    if not isinstance(fields, Mapping):
        raise DeviceError(f"{path}: {name}: must be an object, not {shown(fields)}")
    for field, value in fields.items():
        if field == CLASS:
            continue
        if field not in FIELDS:
            raise DeviceError(f"{path}: {name}: unknown field {field!r}{nearest(field, FIELDS)}")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and isfinite(value) and 0 < value < LARGEST):
            raise DeviceError(
                f"{path}: {name}: {field} must be a positive number or null, not {shown(value)}"
            )
