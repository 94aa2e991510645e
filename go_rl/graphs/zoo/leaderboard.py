"""A leaderboard of one's own: plans of the named problems, and a list made of them.

A board is a folder with ``NAME.plan.json``, the best submitted plan of each problem, and
``leaderboard.json``, which `go_rl.compare.submitted_plans` computes from these files alone. What
ships (`go_rl.graphs.zoo.best_known`) is never written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from go_rl.core.errors import ZooError
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text
from go_rl.graphs.zoo.best_known import BEST_VERSION, BestEntry, best_entries

BOARD_FORMAT = "go_rl-leaderboard-1"
"""Version of the list's layout."""
LIST, ENDING = "leaderboard.json", ".plan.json"
"""Name of the list, and how the name of a plan's file ends."""


@dataclass(frozen=True)
class Submission:
    """Outcome of a submitted plan."""

    entry: BestEntry
    """The plan, its seconds and digest as they were computed here."""
    before: BestEntry | None
    """Best plan known until now; None: there was none."""
    source: str
    """Source of the best plan: `BEST_VERSION`, or the board's folder."""
    accepted: bool
    """Whether the plan is better, and was written."""


def read_board(board: Path) -> dict[str, BestEntry]:
    """Return the list of a board by name of problem.

    Raises:
        ZooError: it is missing or malformed.
    """
    path = board / LIST
    try:
        if not path.exists():
            check_board(board)
        document = read_json(path)
        if document["format"] != BOARD_FORMAT:
            raise ValueError(f"format {document['format']!r}, not {BOARD_FORMAT!r}")
        return {plan["name"]: BestEntry(**plan) for plan in document["plans"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        advice = f"go-rl zoo best --board {board} --rebuild makes it from the plans beside it"
        reason = "it is missing" if isinstance(error, FileNotFoundError) else error
        raise ZooError(
            f"{path}: not a readable leaderboard ({reason}); "
            f"{advice if _holds_plans(board) else 'no plan lies beside it: delete it'}"
        ) from error


def check_board(board: Path) -> None:
    """Raise a `ZooError` for a board that is no folder, or holds no plan."""
    if board.exists() and not board.is_dir():
        raise ZooError(f"{board}: is a file; a leaderboard is a folder")
    if not _holds_plans(board):
        raise ZooError(
            f"{board}: {'holds no plan' if board.exists() else 'no such folder'}; a leaderboard is "
            f"a folder of plans (NAME{ENDING}), which go-rl zoo best submit PLAN --board {board} "
            "begins"
        )


def _holds_plans(board: Path) -> bool:
    return any(board.glob(f"*{ENDING}"))


def best_of(
    name: str, listed: Mapping[str, BestEntry], board: Path
) -> tuple[BestEntry | None, str]:
    """Return the better of what ships and what a board lists for a problem, and its source."""
    shipped, own = best_entries().get(name), listed.get(name)
    if own is None or (shipped is not None and shipped.seconds <= own.seconds):
        return shipped, BEST_VERSION
    return own, str(board)


def write_board(board: Path, entries: Mapping[str, BestEntry]) -> None:
    """Write the list of a board."""
    lines = ",\n".join(
        f"  {json.dumps(asdict(entries[n]), sort_keys=True)}" for n in sorted(entries)
    )
    write_text(board / LIST, f'{{"format": "{BOARD_FORMAT}", "plans": [\n{lines}\n]}}\n')
