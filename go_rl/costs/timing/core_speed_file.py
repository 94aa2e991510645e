"""``pace-<target>.json`` of a folder of measurements: the reference speed of the core that measures
on a target (`go_rl.costs.timing.core_speed`), and which processor it is of.

What is measured on two processors must not be one target: times of the same kernel would be those
of two machines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from go_rl.core import RecordError
from go_rl.core.files.whole_file import write_text

FULL_PACE, PROCESSOR = "full_pace_seconds", "processor"


@dataclass(frozen=True)
class FolderPace:
    """Pace of a target's machine, as known in a folder."""

    full_pace: float
    """Seconds of the fixed work at the core's reference speed."""
    processor: str = ""
    """`processor_name` of where it was measured; "": unknown, or no processor measures."""

    def check(self, path: Path, target: str, here: str) -> None:
        """Raise a `RecordError` if this machine's processor is known to be another one.

        Args:
            path: of the file that this was read from.
            target: its target.
            here: this machine's processor.
        """
        if self.processor and here and here != self.processor:
            raise RecordError(
                f"{path}: {target!r} was measured on a processor {self.processor}, and this "
                f"machine's is {here}: times of both must not mix; give this machine a name of its "
                "own (--target), or measure into another folder"
            )


def pace_path(folder: Path, target: str) -> Path:
    """Return the file of a target."""
    return folder / f"pace-{target}.json"


def read_pace(path: Path) -> FolderPace:
    """Read what `write_pace` wrote.

    Raises:
        RecordError: the file is damaged.
    """
    try:
        told = json.loads(path.read_text())
        found = FolderPace(float(told[FULL_PACE]), str(told.get(PROCESSOR, "")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path}: must hold a number {FULL_PACE!r} ({error})") from error
    if not 0 < found.full_pace < float("inf"):
        raise RecordError(f"{path}: {FULL_PACE} must be seconds above 0, not {found.full_pace}")
    return found


def write_pace(path: Path, pace: FolderPace) -> None:
    """Write the file, and the folder if there is none; a reader never sees half of it."""
    write_text(path, json.dumps({FULL_PACE: pace.full_pace, PROCESSOR: pace.processor}) + "\n")
