"""Many processes write to one store at once, SQLite and PostgreSQL: nothing is lost or torn."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
import sqlalchemy as sql

from go_rl.core import RecordError
from go_rl.runtime.records import RecordStore
from tests.runtime.records.postgres_server import programs, server

WRITER = """
import sys
from go_rl.runtime.records import Record, RecordStore

url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with RecordStore(url) as store:
    for i in range(count):
        own = Record(workload=f"{name}-{i}", target="t", seconds=1.0 + i, repeats=1,
                     details={"writer": name, "text": name * 500})
        shared = Record(workload=f"shared-{i}", target="t", seconds=1.0, repeats=1,
                        details={"writer": name})
        store.add([own, shared])
"""


@pytest.fixture(scope="module")
def postgres():
    pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed")
    if programs() is None:
        pytest.skip("PostgreSQL's initdb and postgres are not installed")
    with server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "records.sqlite")
    return request.getfixturevalue("postgres")


def write_together(url: str, writers: int, each: int) -> None:
    names = [f"{chr(97 + i)}{each}" for i in range(writers)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, name, str(each)], stderr=subprocess.PIPE
        )
        for name in names
    ]
    with RecordStore(url) as store:
        while any(process.poll() is None for process in processes):
            store.count("t")
        assert [process.communicate()[1] for process in processes] == [b""] * writers
        found = {record.workload: record for record in store.find("t")}
    for name in names:
        for i in range(each):
            record = found[f"{name}-{i}"]
            assert record.seconds == 1.0 + i
            assert record.details == {"writer": name, "text": name * 500}
    assert {found[f"shared-{i}"].details["writer"] for i in range(each)} <= set(names)


def test_processes_lose_and_tear_nothing(url):
    write_together(url, writers=2, each=10)


def test_postgresql_keeps_what_sqlite_keeps(postgres, tmp_path, measured):
    failed = measured("w", setting='{"a":1}', seconds=None, repeats=0, reason="out of memory ✗")
    records = [measured("v", details={"x": [1, 2.5, None]}), failed]
    found = []
    for url in (postgres, tmp_path / "records.sqlite"):
        with RecordStore(url) as store:
            store.add(records)
            found.append(store.find("cpu-1", ["v", "w"]))
    assert found[0] == found[1]
    assert {record.key for record in found[0]} == {record.key for record in records}


def test_a_full_disk_is_an_error_in_words_and_nothing_is_lost(tmp_path, measured, monkeypatch):
    path = tmp_path / "r.sqlite"
    with RecordStore(path) as store:
        store.add([measured("a")])
        size = path.stat().st_size
        with _limited_pages(store, size), pytest.raises(RecordError, match="full"):
            store.add([measured(f"b{i}", details={"text": "x" * 5000}) for i in range(50)])
        assert store.find("cpu-1") == [measured("a")]


def _limited_pages(store: RecordStore, size: int):
    """SQLite's own limit of a file's pages says what a full disk says."""

    @contextmanager
    def limited():
        def bound(connection, _):
            connection.execute(f"PRAGMA max_page_count = {size // 4096 + 2}")

        sql.event.listen(store._engine, "connect", bound)
        yield
        sql.event.remove(store._engine, "connect", bound)

    return limited()
