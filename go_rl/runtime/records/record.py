"""`Record`: one measurement of one workload on one target, or why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from go_rl.core.errors import RecordError
from go_rl.core.files.typed_json import from_json

LARGEST = 2**31 - 1
"""Largest whole number that every database keeps."""
AS_IT_COMES = ""
"""The setting of a measurement under the defaults."""


def utc_now() -> str:
    """Return the time of day in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def canonical_json(document: Any) -> str:
    """Return the one JSON text of ``document``: keys sorted, no spaces, ASCII.

    Raises:
        RecordError: it holds something that JSON lacks, such as infinity or an array.
    """
    return json.dumps(_plain(document, "document"), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class Record:
    """One measurement. Workload, target, setting and round are the key.

    Raises:
        RecordError: a field is out of range, or two contradict each other.
    """

    workload: str
    """Canonical hash of the workload."""
    target: str
    """Target of the measurement, such as ``cpu-1``."""
    setting: str = AS_IT_COMES
    """Canonical JSON of the configuration measured: layout, flags; "": the defaults."""
    round: int = 0
    """Repetitions of the whole measurement, hours apart, are rounds."""
    seconds: float | None = None
    """Seconds of one run, by the timing rule of the measurement; None: there is no time."""
    spread: float | None = None
    """Half the width of the 95 % interval of the seconds, relative to them; None: unknown."""
    repeats: int = 0
    """Timed calls."""
    reason: str = ""
    """Why there is no time; "" where there is one."""
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Provenance of the measurement: any JSON."""
    measured_at: str = field(default_factory=utc_now)
    """ISO 8601 in UTC; when not given, now."""

    def __post_init__(self) -> None:
        for name in ("workload", "target", "setting", "reason", "measured_at"):
            _check_text(name, getattr(self, name), name in ("workload", "target", "measured_at"))
        for name in ("round", "repeats"):
            _check(0 <= getattr(self, name) <= LARGEST, name, self, f"0 to {LARGEST}")
        _check_setting(self.setting)
        _check_outcome(self)
        _check_moment(self)
        object.__setattr__(self, "details", _plain(self.details, "details"))

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Key of a record."""
        return self.workload, self.target, self.setting, self.round

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return {name: getattr(self, name) for name in FIELDS}

    @staticmethod
    def from_json(document: object) -> Record:
        """Read what `to_json` wrote.

        Raises:
            RecordError: a field is missing, unknown, malformed, or contradicts another.
        """
        return from_json(Record, document, "record", RecordError, complete=True)


FIELDS = tuple(f.name for f in fields(Record))


def _check(right: bool, name: str, record: Record, allowed: str) -> None:
    if not right:
        raise RecordError(f"{name} must be {allowed}, not {getattr(record, name)!r}")


def _check_text(name: str, text: str, needed: bool) -> None:
    if needed and not text.strip():
        raise RecordError(f"{name} must not be empty")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{name} must be Unicode text, not {text!r} ({error.reason})") from None
    if "\0" in text:
        raise RecordError(f"{name} must be text without NUL characters, not {text!r}")


def _check_setting(setting: str) -> None:
    if setting == AS_IT_COMES:
        return
    try:
        canonical = canonical_json(json.loads(setting))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"setting must be JSON, not {setting!r} ({error})") from None
    if canonical != setting:
        raise RecordError(
            f"setting must be canonical JSON, {canonical!r}, not {setting!r}; write it with "
            "go_rl.runtime.records.canonical_json"
        )


def _check_outcome(record: Record) -> None:
    if record.seconds is None:
        _check(bool(record.reason.strip()), "reason", record, "given where there are no seconds")
        _check(record.spread is None, "spread", record, "None where there are no seconds")
        return
    _check(not record.reason, "reason", record, "empty where there are seconds")
    _check(0 < record.seconds < math.inf, "seconds", record, "finite and above 0, or None")
    _check(record.repeats > 0, "repeats", record, "at least 1 where there are seconds")
    if record.spread is not None:
        _check(0 <= record.spread < math.inf, "spread", record, "finite and at least 0, or None")


def _check_moment(record: Record) -> None:
    try:
        right = datetime.fromisoformat(record.measured_at).utcoffset() == timedelta(0)
    except ValueError:
        right = False
    _check(right, "measured_at", record, "ISO 8601 in UTC, such as 2025-01-31T12:00:00+00:00")


def _plain(value: Any, where: str) -> Any:
    """Return ``value`` as JSON reads it back: dictionaries, lists, text, finite numbers."""
    if value is None or type(value) in (bool, int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise RecordError(f"{where} must have text as keys, not {list(value)}")
        return {str(key): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise RecordError(
        f"{where} must be JSON (a finite number, text, true, false, null, a list or an object), "
        f"not {value!r}"
    )
