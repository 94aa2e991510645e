"""How important features are: to the trees that use them, and to the order that is predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int64

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import pair_accuracy


def gain_shares(booster: Any, names: Sequence[str]) -> dict[str, float]:
    """Return each feature's share of what the splits of XGBoost's trees gain in all, the largest
    first; features without a split have 0.

    Args:
        booster: XGBoost's.
        names: of the columns that it learned from.

    Raises:
        TrainingError: the booster has another number of columns.
    """
    if booster.num_features() != len(names):
        raise TrainingError(
            f"importance: trees of {booster.num_features()} features, and {len(names)} names"
        )
    gain = booster.get_score(importance_type="total_gain")
    total = sum(gain.values()) or 1.0
    shares = {name: gain.get(f"f{i}", 0.0) / total for i, name in enumerate(names)}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def permutation_losses(
    predict: Callable[[Float32[np.ndarray, "P F"]], Float64[np.ndarray, "P"]],
    features: Float32[np.ndarray, "P F"],
    seconds: Float64[np.ndarray, "P"],
    group: Int64[np.ndarray, "P"],
    columns: Mapping[str, Sequence[int]],
    seed: int = 0,
) -> dict[str, float]:
    """Return, for each set of columns, by how much `pair_accuracy` falls when they are permuted
    together among programs (Breiman 2001, section 10).

    Args:
        predict: seconds or scores of features, smaller for faster.
        features: [P, F] of programs that were not learned from.
        seconds: [P] true ones.
        group: [P] see `pair_accuracy`.
        columns: of each set, by name.
        seed: of the permutations.
    """
    rng = np.random.default_rng(seed)
    whole = pair_accuracy(predict(features), seconds, group)
    found = {}
    for name, some in columns.items():
        mixed = features.copy()
        mixed[:, list(some)] = features[rng.permutation(len(features))][:, list(some)]
        found[name] = whole - pair_accuracy(predict(mixed), seconds, group)
    return found
