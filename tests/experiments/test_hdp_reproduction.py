"""The page of HDP: runs told apart by colocation and by number of samples."""

from __future__ import annotations

from experiments.placement.go_rows import ROWS, row_problem
from experiments.placement.hdp_reproduction import ATTEMPTS, Run, page


def run(attempt: str, samples: int, colocate: str, best: float) -> Run:
    """Half the expert's 10 ms, or more, after 100 samples."""
    curve = [[1, 20.0], [100, best]]
    means = [float(30 - i) for i in range(10)]
    row = next(iter(ROWS))
    return Run(row, attempt, "", 0, samples, 20.0, 10.0, best, 120.0, curve, means, colocate)


def test_each_colocation_has_its_table():
    text = page([
        run("published", 10_000, "gradients", 5.0),
        run("published", 10_000, "graph", 20.0),
        run("published, untrained", 2_000, "gradients", 8.0),
    ])  # fmt: skip
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert [line.rpartition(":")[2].strip() for line in headings] == [
        "10,000 samples", "2,000 samples", "10,000 samples",
    ]  # fmt: skip
    assert (
        "| 5.0 (0.50) | 5.0 (0.50) | 5.0 (0.50) | 5.0 (0.50) | 5.0 (0.50) | 30.0 | 21.0 | 2.0 |"
        in text
    )
    assert "| 8.0 (0.80) | 8.0 (0.80) | 8.0 (0.80) | 30.0 | 21.0 | 2.0 |" in text


def test_the_untrained_arm_differs_in_nothing_else():
    """Where nothing is learned, what the baseline starts from has no effect."""
    one, other = ATTEMPTS["published"], ATTEMPTS["published, untrained"]
    differing = {n for n in vars(one) if getattr(one, n) != getattr(other, n)}
    assert differing == {"learning_rate", "failure_first"}
    assert other.learning_rate == 0.0


def test_rows_are_colocated_where_asked():
    graph = row_problem("Transformer-XL 2 layers", colocate="gradients").graph
    assert (graph.colocation >= 0).mean() > 0.5
    assert (row_problem("Transformer-XL 2 layers").graph.colocation < 0).all()
