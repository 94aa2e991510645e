"""Records, and the file that holds them."""

import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.core import RecordError
from go_rl.runtime.records import Record, canonical_json, export_records, load_records


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


HEADER = {"format": "go_rl records", "version": 1, "count": 1}


@pytest.fixture
def records(measured):
    return [
        measured("b", spread=0.01, details={"runner": "x", "versions": [1, 2]}),
        measured("a", setting='{"tile":8}', round=2),
        measured("c", seconds=None, repeats=0, reason="did not finish in 2 s"),
    ]


def test_records_come_back_in_their_order(records, tmp_path):
    path = tmp_path / "new" / "records.jsonl.gz"
    export_records(iter(records), path)
    assert load_records(path) == records
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    export_records([], path)
    assert load_records(str(path)) == []


def test_the_same_records_make_the_same_bytes(records, tmp_path):
    for name in ("one.gz", "two.gz"):
        export_records(records, tmp_path / name)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    lines = gzip.decompress((tmp_path / "one.gz").read_bytes()).decode().splitlines()
    assert json.loads(lines[0]) == HEADER | {"count": 3}
    assert [json.loads(line)["workload"] for line in lines[1:]] == ["b", "a", "c"]


def test_a_file_cut_off_anywhere_is_refused(records, tmp_path):
    path = tmp_path / "records.gz"
    export_records(records, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError, match=r"records\.gz: line \d"):
            load_records(path)


def test_flipped_bytes_never_pass_as_other_records(records, tmp_path):
    path = tmp_path / "records.gz"
    export_records(records, path)
    whole = path.read_bytes()
    for at in range(10, len(whole), 3):  # the first ten are gzip's own: time, system
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with pytest.raises(RecordError, match=r"records\.gz: line \d"):
            load_records(path)


@pytest.mark.parametrize(
    ("header", "lines", "said"),
    [
        ({"format": "x"}, [], "line 1 does not say 'go_rl records'"),
        ([], [], "line 1 does not say"),
        (HEADER | {"version": 2}, [], "line 1 says version 2, and this go_rl reads 1"),
        (HEADER | {"count": None}, [], "line 1: count must be a whole number, not None"),
        (HEADER, [], "line 1 is the last, but the header promises 1 records"),
        (HEADER, [b"{}"], "line 2: record: field 'workload' is missing"),
        (HEADER, [b"\xff"], "line 2 is damaged"),
        (HEADER, [b"{"], "line 2 is damaged"),
        (HEADER, [b"[" * 100_000], "line 2 is damaged"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, header, lines, said):
    path = tmp_path / "records.gz"
    path.write_bytes(gzip.compress(b"\n".join([json.dumps(header).encode(), *lines])))
    with pytest.raises(RecordError, match=rf"records\.gz: {said}"):
        load_records(path)
