"""A record checks itself and survives JSON."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.core import RecordError
from go_rl.runtime.records import Record, canonical_json


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workload": " "}, "^workload must not be empty"),
        ({"target": ""}, "^target must not be empty"),
        ({"workload": "a\0b"}, "^workload must be text without NUL characters, not 'a"),
        ({"target": "\udc80"}, r"^target must be Unicode text, not '\\udc80'"),
        ({"setting": "{"}, r"^setting must be JSON, not '\{'"),
        ({"setting": "NaN"}, "^document must be JSON"),
        ({"setting": '{"b": 1, "a": 2}'}, r"""^setting must be canonical JSON, '{"a":2,"b":1}'"""),
        ({"round": -1}, "^round must be 0 to 2147483647, not -1"),
        ({"round": 2**31}, "^round must be 0 to 2147483647, not 2147483648"),
        ({"repeats": -1}, "^repeats must be 0 to 2147483647"),
        ({"repeats": 0}, "^repeats must be at least 1 where there are seconds, not 0"),
        ({"seconds": 0.0}, "^seconds must be finite and above 0, or None, not 0.0"),
        ({"seconds": -1.0}, "^seconds must be finite"),
        ({"seconds": math.inf}, "^seconds must be finite"),
        ({"seconds": math.nan}, "^seconds must be finite"),
        ({"spread": -0.1}, "^spread must be finite and at least 0, or None, not -0.1"),
        ({"spread": math.nan}, "^spread must be finite"),
        ({"reason": "too slow"}, "^reason must be empty where there are seconds, not 'too slow'"),
        ({"seconds": None}, "^reason must be given where there are no seconds, not ''"),
        ({"seconds": None, "reason": "\t"}, "^reason must be given"),
        ({"seconds": None, "reason": "r", "spread": 0.1}, "^spread must be None where there are"),
        ({"measured_at": "yesterday"}, "^measured_at must be ISO 8601 in UTC, such as 2025"),
        ({"measured_at": "2025-01-31T12:00:00"}, "^measured_at must be ISO 8601 in UTC"),
        ({"measured_at": "2025-01-31T12:00:00+01:00"}, "^measured_at must be ISO 8601 in UTC"),
        ({"details": {"a": [1, math.nan]}}, r"^details\['a'\]\[1\] must be JSON .* not nan"),
        ({"details": {"a": {"b": np.int64(1)}}}, r"^details\['a'\]\['b'\] must be JSON"),
        ({"details": {"a": {1: 2}}}, r"^details\['a'\] must have text as keys, not \[1\]"),
    ],
)
def test_what_cannot_be_is_refused_by_field(measured, changed, said):
    with pytest.raises(RecordError, match=said):
        measured(**changed)


def test_a_failure_is_a_record(measured):
    record = measured(seconds=None, repeats=0, reason="killed by SIGSEGV")
    assert (record.seconds, record.reason) == (None, "killed by SIGSEGV")
    assert record.key == ("w", "cpu-1", "", 0)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    seconds=st.floats(1e-300, 1e300),
    spread=st.none() | st.floats(0, 1e300),
    setting=PLAIN,
    details=st.dictionaries(st.text(), PLAIN, max_size=3),
)
def test_json_round_trip(seconds, spread, setting, details):
    record = Record(
        workload="w", target="t", setting=canonical_json(setting), seconds=seconds, spread=spread,
        repeats=1, details=details,
    )  # fmt: skip
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seconds": "1"}, "^record: seconds must be a finite number or null, not '1'"),
        ({"seconds": 10**400}, "^record: seconds must be a finite number"),
        ({"round": True}, "^record: round must be a whole number, not True"),
        ({"repeats": 1.0}, "^record: repeats must be a whole number, not 1.0"),
        ({"details": []}, r"^record: details: must be a JSON object, not \[\]"),
        ({"reason": None}, "^record: reason must be a text, not None"),
        ({"secnods": 1}, "^record: unknown field 'secnods'; did you mean 'seconds'?"),
    ],
)
def test_malformed_documents_are_refused_by_field(measured, changed, said):
    with pytest.raises(RecordError, match=said):
        Record.from_json(measured().to_json() | changed)


def test_missing_fields_and_other_documents_are_refused(measured):
    document = measured().to_json()
    del document["spread"]
    with pytest.raises(RecordError, match=r"^record: field 'spread' is missing"):
        Record.from_json(document)
    with pytest.raises(RecordError, match=r"^record: must be a JSON object"):
        Record.from_json([1])
