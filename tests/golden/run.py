"""Runs cases one after the other, keeps what is done, and goes on where it stopped."""

import sys
from collections.abc import Sequence
from pathlib import Path

from runner.bars import bars
from runner.progress_file import LineFile

from .cases import Case
from .fingerprint import Facts
from .results import Results, new_results

FAILURE = "failure"
"""Fact of a case that raised."""
HEADER = "header"


def run(cases: Sequence[Case], part: Path) -> Results:
    """Return the facts of all cases, those in ``part`` not found again.

    Args:
        cases: what to find.
        part: file that keeps what is done so far; what another tree left there is not used.
    """
    results, kept = new_results(), LineFile(part)
    done = _begun(results, kept)
    with bars() as begin:
        tell = begin("cases", len(cases))
        for place, case in enumerate(cases, 1):
            if case.name not in done:
                done[case.name] = found(case)
                kept.append({case.name: done[case.name]})
            tell(place, sum(FAILURE in facts for facts in done.values()))
    return Results(results.header, {case.name: done[case.name] for case in cases})


def found(case: Case) -> Facts:
    """Return the facts of a case; of one that raises, which exception it was."""
    try:
        return case.find()
    except Exception as error:
        print(f"{case.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return {FAILURE: type(error).__name__}


def _begun(fresh: Results, kept: LineFile) -> dict[str, Facts]:
    """What the file has of this tree; else it is begun anew."""
    first, *lines = [*kept] or [{}]
    if first == {HEADER: fresh.header}:
        return {name: facts for line in lines for name, facts in line.items()}
    if first:
        print(f"{kept.path}: of another tree or machine: begun anew", file=sys.stderr)
    kept.path.unlink(missing_ok=True)
    kept.append({HEADER: fresh.header})
    return {}
