"""Runs cases one after the other, keeps what is done, and goes on where it stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .cases import Case
from .fingerprint import Facts
from .results import Results, ResultsError, load_results, new_results

SAVE_EVERY = 20.0
"""Seconds between two savings of what is done."""
FAILURE = "failure"
"""Fact of a case that raised."""


def run(cases: Sequence[Case], part: Path) -> Results:
    """Return the facts of all cases, those in ``part`` not found again.

    Args:
        cases: what to find.
        part: file that keeps what is done so far; what another tree left there is not used.
    """
    done = _begun(part)
    todo = [case for case in cases if case.name not in done.cases]
    if len(todo) < len(cases):
        _tell(f"{len(cases) - len(todo)} of {len(cases)} results are there already ({part})\n")
    started = saved = time.perf_counter()
    try:
        for place, case in enumerate(todo, 1):
            before = time.perf_counter()
            done.cases[case.name] = found(case)
            now = time.perf_counter()
            _tell(f"{place}/{len(todo)} {now - started:.0f} s  {now - before:.1f} s {case.name}\n")
            if now - saved > SAVE_EVERY:
                done.save(part)
                saved = now
    finally:
        done.save(part)
    wanted = {case.name for case in cases}
    return Results(done.header, {n: facts for n, facts in done.cases.items() if n in wanted})


def found(case: Case) -> Facts:
    """Return the facts of a case; of one that raises, which exception it was."""
    try:
        return case.find()
    except Exception as error:
        _tell(f"{case.name}: {type(error).__name__}: {error}\n")
        return {FAILURE: type(error).__name__}


def _begun(part: Path) -> Results:
    fresh = new_results()
    if not part.exists():
        return fresh
    try:
        old = load_results(part)
    except ResultsError as error:
        _tell(f"{error}: begun anew\n")
        return fresh
    if old.header == fresh.header:
        return old
    _tell(f"{part}: results of another tree or machine: begun anew\n")
    return fresh


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
