"""Standard streams that any terminal can take: narrow encodings, and streams that are closed."""

from __future__ import annotations

import codecs
import io
import os
import sys

PLAIN = {
    "µ": "u", "×": "x", "–": "-", "—": "-", "…": "...", "·": "-", "•": "*", "‘": "'", "’": "'",
    **dict.fromkeys("─━═╌╍", "-"),
    **dict.fromkeys("│┃║", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┡┩┳┻╇┴╋", "+"),
}  # fmt: skip
"""Replacements of characters that an encoding lacks; ``?`` stands for all others."""
HANDLER = "go_rl.plain"
"""Name of the error handler that does so."""


def plain_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return `PLAIN` characters for those that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = "".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end])
    return text, error.end


def prepare_streams() -> None:
    """Let standard output and error take any text, and what is closed go nowhere.

    A closed stream (``>&-``) would be None, and the next file opened would take its descriptor.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor: this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    codecs.register_error(HANDLER, plain_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)
