"""Notes about a graph or a plan, short enough to read on a screen."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 240
"""Characters of a note from which on only the first names of its list are shown."""
SHOWN = 3
"""Names of a long list that are shown at least."""


def note_lines(notes: Iterable[str]) -> list[str]:
    """Return a line for each note; of a long list of names the first few and a count."""
    return [f"note: {shortened(str(note))}" for note in notes]


def shortened(note: str) -> str:
    """Return a note as it is, or with the first names of its list and the number of the others."""
    if len(note) <= LONGEST:
        return note
    names = note.split(", ")
    shown = SHOWN
    while shown < len(names) and len(", ".join(names[: shown + 1])) <= LONGEST:
        shown += 1
    left = len(names) - shown
    text = ", ".join(names[:shown])
    if len(text) > 2 * LONGEST or left <= 0:  # no list, or names as long as sentences
        return f"{note[:LONGEST]}... ({len(note) - LONGEST:,} more characters, all with --json)"
    return f"{text} and {left:,} more (all with --json)"
