"""What the parser prints in a box when it refuses a command line, as one sentence."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from go_rl.core.errors import nearest

_BOX = re.compile(r"\x1b\[[0-9;]*m|^[│╭╰] ?|[│╮╯]$", re.MULTILINE)
"""Colours and borders; there are none where the encoding is narrow, but blanks."""
_RULE = re.compile(r"[─-]{4,}")
_NUMBERS = (
    (re.compile(r"invalid literal for int\(\) with base 10: "), "must be a whole number, not "),
    (re.compile(r"could not convert string to float: "), "must be a number, not "),
)
_CHOICE = re.compile(r"invalid choice '(.*)' for argument '(.*)'\. Expected one of \((.*)\)")
_UNION = re.compile(r"no type matching .* - <class '(?:int|float|str)'>: ")
_NAME = re.compile(r"^ {4}(?! )(.*?) *$", re.MULTILINE)
"""A missing argument; what explains it is indented further."""


def sentence(message: str, flags: Sequence[str]) -> str:
    """Return what is wrong; a misspelt flag or choice gets the nearest one of ``flags``."""
    parts = _RULE.split(_BOX.sub("", message))
    content = textwrap.dedent(next((p for p in parts[1:] if p.strip()), message))
    text = " ".join(content.split()).rstrip(".")
    if text.startswith("Missing from"):
        return f"missing: {', '.join(_NAME.findall(content))}"
    if text.startswith("Unrecognized options: "):
        return _unknown(text.partition(": ")[2].split(", "), flags)
    if match := _CHOICE.search(text):
        word, flag, listed = match.groups()
        choices = [c.strip(" '") for c in listed.split(",") if c.strip(" '") not in ("", "None")]
        return (
            f"{flag}: no choice {word!r}{nearest(word, choices)} Use {', '.join(sorted(choices))}"
        )
    text = _UNION.sub("", text.removeprefix("Error parsing "))
    for pattern, words in _NUMBERS:
        text = pattern.sub(words, text)
    return text


def _unknown(words: Sequence[str], flags: Sequence[str]) -> str:
    wrong = next((word for word in words if word.startswith("-")), None)
    if wrong is None:
        return f"one argument too many: {words[0]!r}"
    flag = wrong.partition("=")[0]
    return f"no option {flag}{nearest(flag, flags)}".rstrip(".")
