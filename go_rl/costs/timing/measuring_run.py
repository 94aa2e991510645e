"""`MeasuringRun`: a worker's compiled programs, kept side by side to be timed in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from go_rl.core import ExecutionError
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.timing import TimingSamples, timing_of


@dataclass(frozen=True)
class Hold:
    """Compile a program and keep it, behind those that are held."""

    number: int
    """Number of programs that are held."""
    request: Any


@dataclass(frozen=True)
class Visit:
    """Time a program that is held; it stays."""

    number: int
    """Number in the order of arrival, from 0."""
    timing: TimingConfig


@dataclass(frozen=True)
class Release:
    """Keep no program any longer."""


Timed = Callable[[TimingConfig], TimingSamples | None]
"""Visits a compiled program; None: the core was disturbed, see `go_rl.costs.timing.timing.visit`.
"""
Compile = Callable[[Any], tuple[Timed, dict[str, Any]]]
"""Compiles a request; returns the program, and what is known of it."""


class OtherProcessError(ExecutionError):
    """Programs were held by a process that is no more: it died between two requests."""


class MeasuringRun:
    """Answers requests in a worker process.

    Args:
        compile: of the kind of request that comes.
    """

    def __init__(self, compile: Compile) -> None:
        self._compile = compile
        self._held: list[Timed] = []

    def answer(self, request: Any) -> Any:
        """Do as asked.

        Returns:
            For `Hold`: what is known of the program. For `Visit`: `TimingSamples`, or None where
            the core was disturbed. For any other,
            which is a request with its ``timing``, compiled, timed in one visit and not kept:
            ``seconds``, ``spread``, ``calls``, ``slowed``, ``away``
            (`go_rl.costs.timing.timing.Timing`), and what is known.

        Raises:
            OtherProcessError: other programs are held than the request supposes.
        """
        match request:
            case Hold(number, _) if number != len(self._held):
                raise OtherProcessError(f"{len(self._held)} programs are held, not {number}")
            case Visit(number, _) if number >= len(self._held):
                raise OtherProcessError(f"{len(self._held)} programs are held, not {number + 1}")
            case Hold(_, wanted):
                program, about = self._compile(wanted)
                self._held.append(program)
                return about
            case Visit(number, timing):
                return self._held[number](timing)
            case Release():
                self._held.clear()
                return None
        program, about = self._compile(request)
        samples = program(replace(request.timing, most_slowed=0.0))
        assert samples is not None  # all visits count
        return {**asdict(timing_of(samples)), **about}
