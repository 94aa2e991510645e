"""The adaptive number of measurements of AdaTune: no further visit to what is known well enough.

Li et al., "AdaTune: Adaptive Tensor Program Compilation Made Efficient" (NeurIPS 2020): the
coefficient of variation of what was measured so far decides whether a program is measured
again. A back end that measures through `go_rl.costs.kernels.measure.rounds` follows it where
`TimingConfig.variation` is above 0, whichever tuner chose the programs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from go_rl.costs.timing.timing import TimingSamples, timing_of

LEAST = 2
"""Visits from which there is a variation."""


def settled(visits: Sequence[TimingSamples], variation: float) -> bool:
    """Return whether the times of visits vary so little that no further one is needed.

    Args:
        visits: of one program; the time of a visit is that of `timing_of`.
        variation: the largest coefficient of variation, standard deviation over mean; 0: never.
    """
    if variation == 0 or len(visits) < LEAST:
        return False
    seconds = np.array([timing_of(visit).seconds for visit in visits])
    return float(seconds.std(ddof=1) / seconds.mean()) <= variation
