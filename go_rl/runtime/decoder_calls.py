"""How often a decoder completed a plan: a count that only rises, as a clock does.

A sample is one evaluation of a complete plan. What completes it – the dynamic programme that cuts
an order or grows ideals, a list scheduler, an exact draw of SAMPLE – is counted apart: read the
count before and after.
"""

from __future__ import annotations

from threading import Lock

_LOCK = Lock()
_COUNT = [0]


def count_decoder_calls(number: int = 1) -> None:
    """Add calls that this process has made; any thread may."""
    with _LOCK:
        _COUNT[0] += number


def decoder_calls() -> int:
    """Return the calls that this process has made so far."""
    return _COUNT[0]
