"""Metrics of a cost model: errors of runtimes, and what its choices lose."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int


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


def groups_of(number: Int[np.ndarray, "R"]) -> list[np.ndarray]:
    """Return the rows of each distinct number, ascending."""
    order = np.argsort(number, kind="stable")
    _, first = np.unique(number[order], return_index=True)
    return np.split(order, first[1:])


def medians_of_groups(
    number: Int[np.ndarray, "R"], *columns: Float64[np.ndarray, "R"]
) -> tuple[np.ndarray, ...]:
    """Return the first row of each distinct number, ascending, and the medians of each column over
    the rows of the number."""
    groups = groups_of(number) if len(number) else []
    first = np.array([rows[0] for rows in groups], np.int64)
    medians = (np.array([np.median(each[rows]) for rows in groups], np.float64) for each in columns)
    return first, *medians


def least_of_group(
    values: Float64[np.ndarray, "R"], number: Int[np.ndarray, "R"]
) -> Float64[np.ndarray, "R"]:
    """Return [R] the least value among the rows that have the number of each."""
    _, place = np.unique(number, return_inverse=True)
    least = np.full(place.max(initial=-1) + 1, np.inf)
    np.minimum.at(least, place, values)
    return least[place]


def latency_metrics(
    predicted: Float64[np.ndarray, "P"],
    seconds: Float64[np.ndarray, "P"],
    group: Int[np.ndarray, "P"],
) -> dict[str, float]:
    """Return all metrics of predicted seconds by name; NaN where one is not defined.

    Args:
        predicted: [P] seconds.
        seconds: [P] true ones.
        group: [P] programs with equal numbers compare: those of one task on one target.
    """
    return {
        "mape": mape(predicted, seconds),
        "median": float(100.0 * np.median(np.abs(predicted / seconds - 1.0))),
        "rmse_ms": 1e3 * rmse(predicted, seconds),
        **{f"within_{p}": within(predicted, seconds, p / 100) for p in (5, 10, 20)},
        "pair_accuracy": pair_accuracy(predicted, seconds, group),
        "top_1": top_k(predicted, seconds, group, 1),
        "top_5": top_k(predicted, seconds, group, 5),
        "r2": r_squared(predicted, seconds),
    }


def rmse(predicted: Float64[np.ndarray, "P"], seconds: Float64[np.ndarray, "P"]) -> float:
    """Return the root of the mean squared error, in the unit of both."""
    return float(np.sqrt(np.square(predicted - seconds).mean()))


def within(
    predicted: Float64[np.ndarray, "P"], seconds: Float64[np.ndarray, "P"], share: float
) -> float:
    """Return how many predictions, in percent, are off by at most a share of the truth."""
    return float(100.0 * (np.abs(predicted / seconds - 1.0) <= share).mean())


def pair_accuracy(
    predicted: Float64[np.ndarray, "P"],
    seconds: Float64[np.ndarray, "P"],
    group: Int[np.ndarray, "P"],
) -> float:
    """Return the share of pairs of one group, of different times, whose order is predicted (PCA of
    TenSet and of "Transfer Learning Across Heterogeneous Features", equation 1); NaN: no pairs."""
    right = pairs = 0
    for rows in groups_of(group):
        true = np.sign(seconds[rows][:, None] - seconds[rows][None, :])
        said = np.sign(predicted[rows][:, None] - predicted[rows][None, :])
        right += int(((true > 0) & (said > 0)).sum())
        pairs += int((true > 0).sum())
    return right / pairs if pairs else float("nan")


def top_k(
    predicted: Float64[np.ndarray, "P"],
    seconds: Float64[np.ndarray, "P"],
    group: Int[np.ndarray, "P"],
    k: int,
) -> float:
    """Return TenSet's top-k score: sum of the groups' best times over the sum of the best times
    among the ``k`` programs of each that are predicted fastest."""
    best = found = 0.0
    for rows in groups_of(group):
        chosen = rows[np.argsort(predicted[rows], kind="stable")[:k]]
        best += float(seconds[rows].min())
        found += float(seconds[chosen].min())
    return best / found


def r_squared(predicted: Float64[np.ndarray, "P"], seconds: Float64[np.ndarray, "P"]) -> float:
    """Return 1 - squared errors over squared deviations from the mean; NaN if all are equal."""
    spread = float(np.square(seconds - seconds.mean()).sum())
    return 1.0 - float(np.square(predicted - seconds).sum()) / spread if spread else float("nan")
