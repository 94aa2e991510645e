"""Tables of inner tuners by hand, and the script on a small pool."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.tuning import inner_tuners
from experiments.tuning.tuner_curves import CurveRow, band, median_found, row_of, seed_means
from go_rl.tuning.loop.nouns import TunedOperator
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet


def row(tuner: str, seed: int, found: int, *speeds: float) -> CurveRow:
    return CurveRow("r", "n", "o", tuner, seed, 20, found, 1.5, " ".join(map(str, speeds)))


ROWS = [row("annealing", 0, 10, 0.5, 1.0), row("annealing", 1, 20, 0.7, 0.8),
        row("random", 0, 40, 0.25), row("random", 1, 20, 0.75)]  # fmt: skip


def pools(candidates: int = 30) -> PoolSet:
    """Features 0 to 29; the farther from 12, the slower; candidate 5 failed."""
    at = np.arange(candidates, dtype=np.float32)
    seconds = (1e-3 * (1.0 + np.abs(at - 12))).astype(np.float32)
    seconds[5] = np.nan
    operators = (TunedOperator("small", "w0", 1, 1.0), TunedOperator("large", "w1", 2, 5.0))
    made = [
        CandidatePool(each, seconds, np.ones_like(at), at[:, None], at.astype(np.uint64) + 1)
        for each in operators
    ]
    return PoolSet("toy", "cpu", 1e9, tuple(made))


def test_means_bands_and_medians():
    """Of 0.5 and 0.7 the mean is 0.6; their standard error 0.1, times Student's 12.706."""
    np.testing.assert_allclose(seed_means(ROWS, "random"), [[0.25, 0.25], [0.75, 0.75]])
    mean, half = band(seed_means(ROWS, "annealing"))
    np.testing.assert_allclose(mean, [0.6, 0.9])
    np.testing.assert_allclose(half, [1.2706, 1.2706], rtol=1e-4)
    assert np.isnan(band(np.ones((1, 2)))[1]).all()
    assert median_found(ROWS, "annealing") == 15


def test_a_row_tells_when_the_best_was_found():
    speeds = np.array([0.0, 0.5, 0.5, 0.96, 0.96])
    made = row_of(("r", "n", "o", "t", 0), speeds, 0.01, 2)
    assert (made.trials, made.found_after, made.propose_ms) == (5, 4, pytest.approx(2.0))
    assert made.curve.tolist() == [0.5, 0.96, 0.96]
    assert row_of(("r", "n", "o", "t", 0), speeds[:3], 0.01, 2).found_after == 4


def test_the_table():
    head, lines = inner_tuners.table(ROWS, 10)
    assert head[1:5] == ["speed after 10", "speed after 10", "speed after 10", "speed after 20"]
    assert lines[0] == ["annealing", *["0.600 ± 1.271"] * 3, "0.900 ± 1.271", "15 (2.00×)", "1.5"]
    assert [each.operator.name for each in inner_tuners.heaviest(pools(), 1).pools] == ["large"]


def test_the_script_on_a_small_pool(tmp_path, monkeypatch):
    pytest.importorskip("xgboost", reason="XGBoost is an extra: pip install 'go_rl[tuning]'")
    path = tmp_path / "toy.npz"
    pools().save(path)
    few = {name: inner_tuners.ARMS[name] for name in ("annealing", "random")}
    monkeypatch.setattr(inner_tuners, "ARMS", few)
    options = inner_tuners.InnerTuners((str(path),), 12, 6, 2, 1, out=tmp_path)
    options.run()
    made = (tmp_path / "inner_tuners.csv").read_text()
    options.run()
    assert (tmp_path / "inner_tuners.csv").read_text() == made
    assert len(made.splitlines()) == 1 + 2 * 2
