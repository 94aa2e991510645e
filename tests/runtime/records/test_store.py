"""The store keeps what it is given, whole, and says what is wrong with a database."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from go_rl.core import GoRLError, MissingDependencyError, RecordError
from go_rl.runtime.records import Record, RecordStore


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path / "records.db") as store:
        yield store


def run_sql(path, text):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(text)


def test_records_are_found_by_target_workload_and_round(store, measured):
    a0, a1, b0 = measured("a"), measured("a", round=1, spread=0.5), measured("b", seconds=1e-9)
    tiled = measured("a", setting='{"tile":8}', details={"é": [1, {"x": None}]})
    failed = measured("c", target="gpu-1", seconds=None, repeats=0, reason="out of memory")
    store.add([b0, failed, tiled, a1, a0])
    assert store.find("cpu-1") == [a0, a1, tiled, b0]
    assert store.find("cpu-1", round=0) == [a0, tiled, b0]
    assert store.find("cpu-1", ["b", "c", "nowhere"]) == [b0]
    assert store.find("cpu-1", {"a"}, round=1) == [a1]
    assert store.find("cpu-1", []) == []
    assert store.find("gpu-1") == [failed]
    assert store.find("gpu-2") == []
    assert store.targets() == ["cpu-1", "gpu-1"]
    assert [store.count(t) for t in ("cpu-1", "gpu-1", "gpu-2")] == [4, 1, 0]


def test_the_newer_record_takes_the_older_ones_place(store, measured):
    store.add([measured("a"), measured("b")])
    better = measured("a", seconds=0.5)
    store.add([measured("a", seconds=0.7), better, measured("c")])
    assert store.find("cpu-1") == [better, measured("b"), measured("c")]


KEYS = st.tuples(st.sampled_from("abé"), st.sampled_from(["t", "u"]), st.integers(0, 2))


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(KEYS, st.floats(1e-12, 1e12)), max_size=4), max_size=5))
def test_the_store_agrees_with_a_dictionary(batches):
    truth: dict[tuple[str, str, str, int], Record] = {}
    with RecordStore("sqlite://") as store:
        for batch in batches:
            records = [
                Record(workload=w, target=t, setting=str(r), round=r, seconds=s, repeats=1)
                for (w, t, r), s in batch
            ]
            store.add(records)
            truth |= {record.key: record for record in records}
        for target in ("t", "u"):
            expected = [truth[key] for key in sorted(truth) if key[1] == target]
            assert store.find(target) == expected
            assert store.count(target) == len(expected)


def test_all_records_of_a_call_or_none(store, measured, tmp_path):
    store.add([measured("a")])
    run_sql(
        tmp_path / "records.db",
        "CREATE TRIGGER refuse BEFORE INSERT ON go_rl_records WHEN NEW.workload = 'bad' "
        "BEGIN SELECT RAISE(ABORT, 'refused'); END",
    )
    with pytest.raises(RecordError, match=r"records\.db: not a database of records.*\(refused\)"):
        store.add([measured("a", seconds=9.0), measured("b"), measured("bad")])
    assert store.find("cpu-1") == [measured("a")]

    def broken():
        yield measured("c")
        raise KeyError("c")

    with pytest.raises(KeyError):
        store.add(broken())
    assert store.find("cpu-1") == [measured("a")]


def test_what_is_no_database_is_refused_by_name(tmp_path, measured):
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"seconds" * 1000)
    for use in (lambda s: s.find("t"), lambda s: s.add([measured()]), lambda s: s.targets()):
        with RecordStore(junk) as store, pytest.raises(RecordError, match=r"junk\.db: not a datab"):
            use(store)
    assert junk.read_bytes() == b"seconds" * 1000
    with RecordStore(tmp_path) as store, pytest.raises(RecordError, match="cannot be used"):
        store.count("t")
    with RecordStore(junk / "x.db") as store, pytest.raises(RecordError, match="cannot be opened"):
        store.add([measured()])


def test_a_truncated_database_is_refused(store, measured, tmp_path):
    store.add([measured(f"{i}", details={"text": "x" * 500}) for i in range(100)])
    path = tmp_path / "records.db"
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(RecordError, match=r"records\.db: not a database of records, or a damaged"):
        store.find("cpu-1")


def test_another_version_is_refused_and_left_alone(store, measured, tmp_path):
    store.add([measured()])
    run_sql(tmp_path / "records.db", "UPDATE go_rl_records_version SET version = 7")
    before = (tmp_path / "records.db").read_bytes()
    for use in (lambda: store.count("cpu-1"), lambda: store.add([measured("b")])):
        with pytest.raises(RecordError, match=r"records\.db: its records are of version 7, and"):
            use()
    assert (tmp_path / "records.db").read_bytes() == before


@pytest.mark.parametrize(
    "change", ["details = '{'", "details = '[]'", "seconds = 'fast'", "seconds = -1.0"]
)
def test_damaged_rows_are_refused_by_workload(store, measured, tmp_path, change):
    store.add([measured()])
    run_sql(tmp_path / "records.db", f"UPDATE go_rl_records SET {change}")
    with pytest.raises(RecordError, match=r"records\.db: the record of workload 'w' is damaged"):
        store.find("cpu-1")


@pytest.mark.parametrize("url", ["postgresql://me:hu@sh@host/x", "postgresql://me:hu@s/h@host/x"])
def test_a_password_with_an_at_sign_is_refused_unread(url):
    pytest.importorskip("psycopg")
    with pytest.raises(RecordError, match=r"^postgresql://host/x: .* write %40 for") as caught:
        RecordStore(url)
    assert "hu" not in str(caught.value)


def test_a_locked_file_is_an_error_in_words(monkeypatch, tmp_path, measured):
    monkeypatch.setattr("go_rl.runtime.records.database.LOCK_SECONDS", 0.1)
    path = tmp_path / "records.db"
    with RecordStore(path) as store, closing(sqlite3.connect(path)) as other:
        store.add([measured()])
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RecordError, match=r"records\.db: cannot be used \(database is locked"):
            store.add([measured("b")])
        other.rollback()
        assert store.find("cpu-1") == [measured()]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgrsql://me:hush@host/x", r"^postgrsql://host/x: unknown database 'postgrsql'; did"),
        ("sqlite://me:hush@host/x", "^sqlite://host/x: not a database URL; write the path"),
        ("://hush", r"^://\.\.\.: not a database URL"),
        ("what://me:hush@b/hush@host/x", "^what://host/x: unknown database 'what'. Use one"),
        ("what://me@host:3/x?password=hush", "^what://host:3/x: unknown"),
    ],
)
def test_malformed_urls_are_named_without_their_secrets(url, said):
    with pytest.raises(RecordError, match=said) as caught:
        RecordStore(url)
    assert "hush" not in str(caught.value)


def test_a_missing_driver_or_an_absent_server_is_an_error_in_words(measured):
    with pytest.raises(GoRLError, match=r"^postgresql\+psycopg://localhost:1/x") as caught:
        RecordStore("postgresql+psycopg://me:hush@localhost:1/x").targets()
    assert isinstance(caught.value, MissingDependencyError | RecordError)
    assert "hush" not in str(caught.value)
