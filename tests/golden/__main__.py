"""``python -m tests.golden record|compare|list``; see `tests.golden` and CONTRIBUTING.md."""

import argparse
import os
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runner

from .cases import Case, all_cases
from .compare import Difference, differences
from .product.problems import DATA_VARIABLE, data_folder
from .results import RECORDED, Results, ResultsError, load_results
from .run import run

SHOWN = 200
"""Most differences that are shown."""
DIFFERENT, UNUSABLE, INTERRUPTED = 1, 2, 130
"""Exit codes."""
PART = ".part.jsonl"
"""Ending of the file that keeps what is done so far."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, compare or list; return the exit code."""
    chosen = _parser().parse_args(arguments)
    if chosen.data is not None:
        os.environ[DATA_VARIABLE] = str(chosen.data.absolute())
    try:
        if chosen.command == "list":
            return _list(chosen.only)
        if chosen.command == "record":
            return _record(chosen.only, chosen.out or RECORDED)
        return _compare(chosen.only, chosen.out, chosen.against)
    except ResultsError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description="Record or compare golden results."
    )
    parser.add_argument("command", choices=("record", "compare", "list"))
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="cases by name, such as 'plan/ring/*/greedy'"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help="record: write here instead of the recorded results; compare: keep fresh results here",
    )  # fmt: skip
    parser.add_argument(
        "--against", type=Path, default=RECORDED, metavar="FILE",
        help="compare: with these results instead of the recorded ones",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help=f"public data sets; else {DATA_VARIABLE}"
    )
    return parser


def _list(pattern: str) -> int:
    for case in _chosen(pattern):
        print(case.name)
    return 0


def _chosen(pattern: str) -> list[Case]:
    found = [case for case in all_cases() if fnmatchcase(case.name, pattern)]
    if not found:
        raise ResultsError(f"--only {pattern!r}: no case has such a name; see the command list")
    return found


def _record(pattern: str, path: Path) -> int:
    """Write all results anew, or those that match into the file that is there."""
    cases = _chosen(pattern)
    if data_folder() is None and any(case.data for case in cases):
        raise ResultsError(
            f"recording needs the public data sets: give --data DIR or {DATA_VARIABLE}"
        )
    part = path.with_suffix(PART)
    fresh = run(cases, part)
    if path.exists() and pattern != "*":
        old = load_results(path).cases
        kept = {n: facts for n, facts in old.items() if not fnmatchcase(n, pattern)}
        fresh = Results(fresh.header, kept | fresh.cases)
    fresh.save(path)
    part.unlink(missing_ok=True)
    print(f"{path}: {len(fresh.cases):,} results")
    return 0


def _compare(pattern: str, out: Path | None, against: Path) -> int:
    """Find the results again and show how they differ from those recorded."""
    recorded, cases = load_results(against), _chosen(pattern)
    usable = [case for case in cases if not case.data or data_folder() is not None]
    if len(usable) < len(cases):
        print(
            f"{len(cases) - len(usable)} cases are left out: the public data sets are not here "
            f"(--data DIR or {DATA_VARIABLE})"
        )
    part = (out or RECORDED.with_name("fresh.json.gz")).with_suffix(PART)
    fresh = run(usable, part)
    if out is None:
        part.unlink()
    else:
        fresh.save(out)
    _say_where(recorded, fresh)
    skipped = {case.name for case in cases} - {case.name for case in usable}
    old = {
        name: facts
        for name, facts in recorded.cases.items()
        if fnmatchcase(name, pattern) and name not in skipped
    }
    found = differences(old, fresh.cases, {case.name: case.clocked for case in cases})
    _show(found, len(fresh.cases))
    return DIFFERENT if found else 0


def _say_where(recorded: Results, fresh: Results) -> None:
    """Tell of other machines and libraries, on which policies may decide otherwise."""
    for name in ("processor", "libraries"):
        theirs, ours = recorded.header.get(name), fresh.header[name]
        if theirs != ours:
            print(f"recorded with another {name}: {theirs}; here: {ours}")


def _show(found: list[Difference], count: int) -> None:
    """Print a table of differences, or a sentence that there are none."""
    if not found:
        print(f"{count:,} results are as recorded")
        return
    table = Table("case", "what", "recorded", "now")
    for each in found[:SHOWN]:
        table.add_row(*(Text(text) for text in (each.case, each.what, each.old, each.new)))
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    cases = len({each.case for each in found})
    more = f" ({SHOWN} are shown)" if len(found) > SHOWN else ""
    print(f"{len(found):,} differences in {cases:,} of {count:,} results{more}")


if __name__ == "__main__":
    sys.exit(main())
