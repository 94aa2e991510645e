"""Run mutants and print what failed: ``python -m mutation KIND START COUNT [leftovers]``, in the
folder ``tests``; ``python -m mutation record`` writes the plan and bytecode that are mutated."""

import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runner

from runner.bars import bars
from runner.suite import Suite
from runner.worker_pool import Runner

from .kinds import record_bytecode, record_plan
from .trial import told

SHOWN = 3
"""Failures of one sort that are printed each."""


def main(kind: str, start: int, count: int, leftovers: bool) -> None:
    """Try mutants, each in a process that it may end; print how many of each sort failed."""
    suite = Suite(
        name=kind, proves="read or refused", unit="mutants", count=start + count,
        trial=partial(told, kind, leftovers),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, bars() as begin:
        asked = range(start, start + count)
        failures = Runner(Path(folder)).run(suite, asked, begin(kind, count))
    sorts: Counter[str] = Counter()
    for failure in failures:
        sort = failure.what[:100]
        if sorts[sort] < SHOWN:
            print(f"{kind} {failure.index}: {failure.what}")
        sorts[sort] += 1
    print(f"{kind}: {count} tried, {len(failures)} failed")
    for sort, number in sorts.most_common():
        print(f"{number:6} {sort}")


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        record_plan()
        record_bytecode()
        sys.exit()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "leftovers" in sys.argv[4:])
