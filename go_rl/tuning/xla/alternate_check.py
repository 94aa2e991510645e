"""The last word: default and winner measured again, their kernels visited in turn.

What won was the fastest of many noisy measurements, so these flatter it; a fresh round does not.
Kernels that both share are measured once and count for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np

from go_rl.runtime.records import AS_IT_COMES
from go_rl.tuning.xla.fusions import GraphFusion
from go_rl.tuning.xla.kernel_timer import KernelTimer
from go_rl.tuning.xla.outcome import Check

Job = tuple[str, str]
"""Hash of a kernel, and its setting."""


def check_alternately(
    timer: KernelTimer,
    default: GraphFusion,
    best: GraphFusion,
    settings: Mapping[str, str],
    rounds: int,
) -> Check | str:
    """Return both times, or why there is none.

    Args:
        timer: an equal check that it has records of is not made again; checks are numbered from -1
            downwards, and share no number with what was compared while tuning.
        default: run as it comes.
        best: run under ``settings``.
        settings: by hash of kernel.
        rounds: of which each kernel's median counts.
    """
    ours = [(part.hash, settings.get(part.hash, AS_IT_COMES)) for part in best.parts]
    theirs = [(part.hash, AS_IT_COMES) for part in default.parts]
    parts = {part.hash: part for part in (*default.parts, *best.parts)}
    jobs = _in_turn(theirs, ours)
    whose = [(parts[hash_], setting) for hash_, setting in jobs]
    seconds: dict[Job, list[float]] = {job: [] for job in jobs}
    for number in range(1, rounds + 1):
        for job, record in zip(jobs, timer.again(whose, -number), strict=True):
            if record.seconds is None:
                return f"a kernel could not be timed again: {record.reason}"
            seconds[job].append(record.seconds)
    median = {job: float(np.median(times)) for job, times in seconds.items()}
    return Check(sum(median[job] for job in theirs), sum(median[job] for job in ours), rounds)


def _in_turn(one: Sequence[Job], two: Sequence[Job]) -> list[Job]:
    """All jobs, each once, from both lists by turns."""
    mixed = [job for pair in zip_longest(one, two) for job in pair if job is not None]
    return list(dict.fromkeys(mixed))
