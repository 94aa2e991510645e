"""`select_tasks`: which tasks to measure on a new device (CDMPP, algorithm 1).

Clusters of the features of all programs; for each, the largest first, the task whose programs are
nearest to its centre on average and that was not chosen before.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, Int64
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.examples import ProgramInputs

LEAST_SPREAD = 1e-3


def select_tasks(
    features: Float[np.ndarray, "P F"], task: Int[np.ndarray, "P"], count: int, seed: int = 0
) -> Int64[np.ndarray, "K"]:
    """Return ``K`` numbers of tasks, the one of the largest cluster first.

    Args:
        features: [P, F] of all programs, on one scale: latents, or `program_features`.
        task: [P] number of each program's task.
        count: ``K``, tasks to be chosen.
        seed: of the clusters.

    Raises:
        TrainingError: there are fewer tasks.
    """
    known = np.unique(task)
    if not 1 <= count <= len(known):
        raise TrainingError(f"{count} tasks cannot be chosen of {len(known)}")
    features = np.asarray(features, np.float64)
    centres, size = _clusters(features, count, seed)
    apart = cdist(centres, features)  # [C, P]
    mean = np.stack([apart[:, task == number].mean(axis=1) for number in known], axis=1)  # [C, T]
    chosen: list[int] = []
    for cluster in np.argsort(-size, kind="stable"):
        chosen.append(int(np.argmin(mean[cluster])))
        mean[:, chosen[-1]] = np.inf
    return known[np.array(chosen)]


def program_features(inputs: ProgramInputs) -> Float[np.ndarray, "P F"]:
    """Return [P, F] standardised sums of leaf vectors, those that are not constant."""
    sums = inputs.asts.sums().astype(np.float64)
    spread = sums.std(axis=0)
    varied = spread > LEAST_SPREAD
    return (sums[:, varied] - sums[:, varied].mean(axis=0)) / spread[varied]


def _clusters(
    features: Float[np.ndarray, "P F"], count: int, seed: int
) -> tuple[Float[np.ndarray, "C F"], Int64[np.ndarray, "C"]]:
    """Centres and sizes of clusters, by k-means from k-means++ seeds; some may be empty."""
    rng = np.random.default_rng(seed)
    centres, label = kmeans2(features, count, iter=25, minit="++", rng=rng, missing="warn")
    return centres, np.bincount(label, minlength=count)
