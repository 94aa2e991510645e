"""`issued_ahead`: the time of kernels that a host issues without waiting for the GPU.

Eager PyTorch runs so: where kernels are long the host is ahead of the GPU and its part costs
nothing; where they are short it is all that counts. Host and GPU are two devices of `replay`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from go_rl.costs.operators.launch_replay import Operators, Replay, ReplayError, replay

HOST, GPU = 0, 1
BETWEEN_KERNELS = 1e-6
"""Seconds between two kernels of a stream of which the second is issued already."""


def issued_ahead(
    host: Float64[np.ndarray, "L"],
    start: Float64[np.ndarray, "L"],
    busy: Float64[np.ndarray, "L"],
    before: Sequence[Sequence[int]],
) -> Replay:
    """Return the times of L launches on one stream, each as three operators: until the kernel is
    issued, the rest of the host's part, the kernel.

    Args:
        host: [L] seconds for which the host is busy with each launch.
        start: [L] seconds of these after which the kernel is issued.
        busy: [L] seconds of the kernels.
        before: [L] launches that each one waits for, of lower number.

    Raises:
        ReplayError: a launch waits for a later one, or seconds are negative or not finite.
    """
    if any(b >= place for place, each in enumerate(before) for b in each):
        raise ReplayError("issued_ahead: a launch waits for one that is issued later")
    rest = np.maximum(host - start, 0.0)
    duration = np.stack([start, rest, busy + BETWEEN_KERNELS], axis=1).ravel()
    waits: list[tuple[int, ...]] = []
    for place, each in enumerate(before):
        issue = 3 * place
        last = (issue - 2,) if place else ()
        kernels = {3 * b + 2 for b in each} | ({issue - 1} if place else set())
        waits += [last, (issue,), (issue, *sorted(kernels))]
    device = np.tile(np.array([HOST, HOST, GPU], np.int64), len(host))
    return replay(Operators(duration, tuple(waits), device))
