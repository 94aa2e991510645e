"""Records in one file, and what is said of damaged ones."""

import gzip
import json

import pytest

from go_rl.core import RecordError
from go_rl.runtime.records import export_records, load_records

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
