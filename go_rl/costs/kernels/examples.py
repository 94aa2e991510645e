"""What of a data set of kernels a cost model learns from."""

from __future__ import annotations

import json

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.costs.kernels.measure.data import KernelData
from go_rl.costs.kernels.measure.settings import LAYOUTS
from go_rl.runtime.records import AS_IT_COMES


def plain_seconds(data: KernelData) -> Float64[np.ndarray, "K"]:
    """Return [K] seconds of kernels as they come, of the first round; NaN where there are none."""
    seconds = np.full(data.kernels.num_kernels, np.nan)
    seconds[data.kernel[data.plain]] = data.seconds[data.plain]
    return seconds


def absolute_rows(data: KernelData) -> Int64[np.ndarray, "R"]:
    """Return the measurements of the first round that an absolute model learns from: of kernels as
    they come, and under layouts of their operands (flags change the compiler)."""
    used = np.array([s == AS_IT_COMES or LAYOUTS in json.loads(s) for s in data.settings])
    return np.flatnonzero(used[data.setting] & (data.round == 0))
