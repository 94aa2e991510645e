"""What trees and the MLP read of a program: the sum of its leaf vectors, and its target."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from go_rl.costs.programs.features import FEATURE_NAMES
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, ProgramInputs

SUMMED_NAMES = (*FEATURE_NAMES, *TARGET_FEATURES)
"""Names of the columns of `summed_program_features`."""


def summed_program_features(inputs: ProgramInputs) -> Float32[np.ndarray, "P F"]:
    """Return [P, F] sums of leaf vectors, and `TARGET_FEATURES` (log2; NaN where unknown, which
    trees take as missing)."""
    parts = [inputs.asts.sums(), inputs.device_features]
    return np.concatenate(parts, axis=1).astype(np.float32)
