"""``go-rl records``: list, export, merge, and what is wrong with a store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from go_rl.runtime.records import Record, RecordStore

NOON = "2025-01-31T12:00:00+00:00"


def fill(path: str, target: str, count: int, failed: int = 0) -> None:
    with RecordStore(path) as store:
        store.add(
            Record(workload=f"w{i}", target=target, seconds=1.0 + i, repeats=1, measured_at=NOON)
            for i in range(count)
        )
        store.add(
            Record(workload=f"f{i}", target=target, reason="too slow", measured_at=NOON)
            for i in range(failed)
        )


def test_stores_are_listed_exported_and_merged(command):
    Path("run").mkdir()
    fill("run/records.sqlite", "cpu-9", 3, failed=1)
    fill("team.sqlite", "cpu-8", 2)
    assert command("records", "list", "run", "--json").document == [
        {"target": "cpu-9", "workloads": 4, "records": 4, "failed": 1, "newest": NOON,
         "here": False},
    ]  # fmt: skip
    assert (
        "4 records written to r.jsonl.gz" in command("records", "export", "run", "r.jsonl.gz").out
    )
    assert "4 records taken" in command("records", "merge", "team.sqlite", "r.jsonl.gz").out
    assert "0 records taken" in command("records", "merge", "team.sqlite", "run", "r.jsonl.gz").out
    listed = command("records", "list", "team.sqlite")
    assert "cpu-8" in listed.out
    assert "cpu-9" in listed.out
    made = command("records", "export", "team.sqlite", "two.jsonl.gz", "--target", "cpu-8")
    assert "2 records written" in made.out
    assert command("records", "list", "two.jsonl.gz", "--json").document[0]["records"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "nothing"), "nothing: there are no records"),
        (("list", "text"), "text: not a database of records"),
        (("list", "newer.sqlite"), "newer.sqlite: its records are of version 9"),
        (("list", "postgrsql://h/x"), "did you mean 'postgresql'"),
        (("export", "good.sqlite", "x.jsonl.gz", "--target", "cpu-8"), "did you mean 'cpu-9'"),
        (("export", "good.sqlite", "x.jsonl"), "x.jsonl: records are exported compressed"),
        (("merge", "good.sqlite", "broken.jsonl.gz"), "broken.jsonl.gz: line 1 is damaged"),
        (("merge", "good.sqlite", "nothing"), "nothing: there are no records"),
        (("merge", "good.sqlite"), "SOURCE"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(refused, words, said):
    Path("text").write_text("no database" * 100)
    Path("broken.jsonl.gz").write_bytes(b"\x1f\x8bwhat")
    fill("good.sqlite", "cpu-9", 1)
    fill("newer.sqlite", "cpu-9", 1)
    with closing(sqlite3.connect("newer.sqlite")) as connection, connection:
        connection.execute("UPDATE go_rl_records_version SET version = 9")
    refused("records", *words, said=said)
    with RecordStore("good.sqlite") as store:
        assert store.count("cpu-9") == 1
