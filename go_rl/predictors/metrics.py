"""How good a cost model is: errors of runtimes, and what its choices lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64, Int
from scipy.stats import kendalltau


def mape(predicted: Float64[np.ndarray, "K"], seconds: Float64[np.ndarray, "K"]) -> float:
    """Return the mean absolute percentage error, in percent."""
    return float(100.0 * np.abs(predicted / seconds - 1.0).mean())


def ape(
    predicted: Float64[np.ndarray, "R"],
    seconds: Float64[np.ndarray, "R"],
    kernel: Int[np.ndarray, "R"],
) -> float:
    """Return what choosing by a prediction loses, in percent of the best ("A Learnt Performance
    Model for TPUs"): 100 sum_k |t_k(predicted best) - min t_k| / sum_k min t_k.

    Args:
        predicted: [R] seconds or scores of the configurations, smaller for faster.
        seconds: [R] true ones.
        kernel: [R] configurations with equal numbers are of one kernel.
    """
    lost = best = 0.0
    for rows in groups_of(kernel):
        least = float(seconds[rows].min())
        lost += float(seconds[rows][np.argmin(predicted[rows])]) - least
        best += least
    return 100.0 * lost / best


def random_ape(seconds: Float64[np.ndarray, "R"], kernel: Int[np.ndarray, "R"]) -> float:
    """Return the `ape` that random choices have on average, in percent."""
    parts = [seconds[rows] for rows in groups_of(kernel)]
    best = float(sum(part.min() for part in parts))
    return 100.0 * (float(sum(part.mean() for part in parts)) - best) / best


def kendall(
    predicted: Float64[np.ndarray, "R"],
    seconds: Float64[np.ndarray, "R"],
    kernel: Int[np.ndarray, "R"],
) -> float:
    """Return Kendall's tau-b within a kernel, the mean over kernels where it is defined."""
    taus = []
    for rows in groups_of(kernel):
        if len(rows) > 1:
            found: object = kendalltau(predicted[rows], seconds[rows])
            tau = float(found.statistic)  # pyright: ignore[reportAttributeAccessIssue]
            if np.isfinite(tau):
                taus.append(tau)
    return float(np.mean(taus)) if taus else float("nan")


def groups_of(number: Int[np.ndarray, "R"]) -> list[np.ndarray]:
    """Return the rows of each distinct number, ascending."""
    order = np.argsort(number, kind="stable")
    _, first = np.unique(number[order], return_index=True)
    return np.split(order, first[1:])


def by_model(models: Sequence[str], measure: Callable[[np.ndarray], float]) -> dict[str, float]:
    """Return a measure of the rows of each model, by name."""
    owner = np.array(models)
    return {str(name): measure(np.flatnonzero(owner == name)) for name in sorted(set(models))}
