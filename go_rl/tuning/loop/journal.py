"""Journals: the batches of one run, in order. A file is one JSON line a batch, written through.

The first line tells what the run is: operators, target, seed, tuners. A run that is killed while
it writes leaves a torn last line, which is dropped: that batch is measured again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

from go_rl.core.files.strict_json import parse_json
from go_rl.runtime.records import canonical_json
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, Trial
from go_rl.tuning.loop.tuning_state import Phase, TrialBatch

FORMAT, VERSION = "go_rl tuning journal", 1


@runtime_checkable
class Journal(Protocol):
    """Store of the batches of a run."""

    def batches(self) -> Iterator[TrialBatch]:
        """Yield those that are kept, in order."""
        ...

    def append(self, batch: TrialBatch) -> None:
        """Keep one more, before the run goes on."""
        ...


class MemoryJournal:
    """Batches in memory."""

    def __init__(self) -> None:
        self.kept: list[TrialBatch] = []

    def batches(self) -> Iterator[TrialBatch]:
        yield from list(self.kept)

    def append(self, batch: TrialBatch) -> None:
        self.kept.append(batch)


class FileJournal:
    """Batches in a file.

    Args:
        path: of the file; made when the first batch comes.
        about: what the run is, JSON: a file of another run is refused.

    Raises:
        TuningError: the file is damaged before its last line, of another version, or of another
            run; or it cannot be read or written.
    """

    def __init__(self, path: str | Path, about: Mapping[str, Any]) -> None:
        self._path = Path(path)
        header = {"format": FORMAT, "version": VERSION, "about": about}
        self._header = json.loads(canonical_json(header))
        self._read = self._load()

    def batches(self) -> Iterator[TrialBatch]:
        yield from list(self._read)

    def append(self, batch: TrialBatch) -> None:
        """Keep one more; it is on the disk when this returns.

        Raises:
            TuningError: it cannot be written; what was there before stays.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = not self._path.exists()
            with self._path.open("ab") as file:
                end = file.tell()
                text = canonical_json(batch_document(batch)) + "\n"
                if new:
                    text = canonical_json(self._header) + "\n" + text
                try:
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(end)
                    raise
            self._read.append(batch)
        except OSError as error:
            raise TuningError(
                f"{self._path}: cannot be written ({error.strerror}); what was measured before is "
                "kept, and the same command goes on behind it"
            ) from error

    def _load(self) -> list[TrialBatch]:
        try:
            if not self._path.exists():
                return []
            text = self._path.read_bytes()
            whole, torn = text.rpartition(b"\n")[0], not text.endswith(b"\n")
            if torn:
                os.truncate(self._path, len(whole) + 1 if whole else 0)
        except OSError as error:
            raise TuningError(f"{self._path}: cannot be read ({error.strerror})") from error
        lines = whole.split(b"\n") if whole else []
        if not lines:
            self._path.unlink()
            return []
        self._check_header(lines[0])
        return [self._batch(number, line) for number, line in enumerate(lines[1:], 2)]

    def _check_header(self, line: bytes) -> None:
        try:
            found = parse_json(line.decode())
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise TuningError(f"{self._path}: line 1 does not say {FORMAT!r}; name another folder")
        if found.get("version") != VERSION:
            raise TuningError(
                f"{self._path}: a journal of version {found.get('version')!r}, and this go_rl "
                f"reads {VERSION}; name another folder, or use the go_rl that made it"
            )
        ours, theirs = self._header["about"], found.get("about")
        if theirs != ours:
            changed = (
                name for name in ours if not isinstance(theirs, dict)
                or theirs.get(name) != ours[name]
            )  # fmt: skip
            raise TuningError(
                f"{self._path}: is of another run (it differs in {', '.join(changed)}); name "
                "another folder, or repeat the options that it began with"
            )

    def _batch(self, number: int, line: bytes) -> TrialBatch:
        try:
            return read_batch(parse_json(line.decode()))
        except (ValueError, TypeError, KeyError) as error:
            raise TuningError(
                f"{self._path}: line {number} is damaged ({error}); delete it and what follows, "
                "and the run goes on from there"
            ) from error


def batch_document(batch: TrialBatch) -> dict[str, Any]:
    """Return a batch as JSON."""
    return {
        "phase": batch.phase, "operator": batch.operator, "slot": batch.slot,
        "trials": [_trial_document(trial) for trial in batch.trials],
        "seconds": batch.seconds, "exhausted": batch.exhausted,
    }  # fmt: skip


def _trial_document(trial: Trial) -> list[Any]:
    """Five numbers and texts; verdict and details behind them where there are any."""
    plain = [
        trial.candidate.key,
        trial.candidate.document,
        trial.seconds,
        trial.spent,
        trial.reason,
    ]
    more = trial.verdict is not None or trial.details is not None
    return [*plain, trial.verdict, trial.details] if more else plain


def read_batch(document: Any) -> TrialBatch:
    """Read what `batch_document` made; ValueError, TypeError or KeyError where it is none."""
    trials = tuple(
        Trial(Candidate(key, candidate), seconds, spent, reason, *more)
        for key, candidate, seconds, spent, reason, *more in document["trials"]
    )
    if document["phase"] not in get_args(Phase):
        raise ValueError(f"unknown phase {document['phase']!r}")
    return TrialBatch(
        document["phase"], int(document["operator"]), int(document["slot"]), trials,
        float(document["seconds"]), bool(document["exhausted"]),
    )  # fmt: skip
