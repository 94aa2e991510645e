"""Mutants of text: numbers, words, lines and brackets changed at random."""

import re

from .values import WORDS, Rng, broken_bytes, integer, pick

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[A-Za-z_][\w.\-]*")
_BRACKET = re.compile(r"[()\[\]{}<>]")


def mutate_text(text: str, rng: Rng) -> bytes:
    """Return ``text`` after one to three changes, one in five of them of plain bytes."""
    for _ in range(int(rng.integers(1, 4))):
        text = _CHANGES[int(rng.integers(len(_CHANGES)))](text, rng)
    data = text.encode("utf-8", "surrogatepass")
    return broken_bytes(data, rng) if rng.random() < 0.2 else data


def _replaced(text: str, pattern: re.Pattern[str], rng: Rng, new: str | None) -> str:
    """Replace a random match by ``new``, or by another match of the text."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = pick(rng, found)
    word = pick(rng, found)[0] if new is None else new
    return text[: match.start()] + word + text[match.end() :]


def _number(text: str, rng: Rng) -> str:
    word = "9" * 5000 if rng.random() < 0.03 else str(integer(rng))
    return _replaced(text, _NUMBER, rng, word)


def _word(text: str, rng: Rng) -> str:
    return _replaced(text, _WORD, rng, pick(rng, WORDS) if rng.random() < 0.2 else None)


def _bracket(text: str, rng: Rng) -> str:
    many = rng.random() < 0.05
    return _replaced(text, _BRACKET, rng, pick(rng, "()[]{}") * (20_000 if many else 1))


def _drop_bracket(text: str, rng: Rng) -> str:
    return _replaced(text, _BRACKET, rng, "")


def _lines(text: str, rng: Rng) -> str:
    """Drop, repeat, or move a line, or a stretch of them."""
    lines = text.split("\n")
    low = int(rng.integers(len(lines)))
    stretch = lines[low : low + int(rng.integers(1, 4))]
    match int(rng.integers(4)):
        case 0:
            del lines[low : low + len(stretch)]
        case 1:
            lines[low:low] = stretch
        case 2:
            lines[low:low] = stretch * 50
        case _:
            del lines[low : low + len(stretch)]
            place = int(rng.integers(len(lines) + 1))
            lines[place:place] = stretch
    return "\n".join(lines)


def _cut(text: str, rng: Rng) -> str:
    return text[: int(rng.integers(len(text) + 1))]


_CHANGES = (_number, _number, _number, _word, _word, _bracket, _drop_bracket, _lines, _lines, _cut)
