"""Plans under two prices: how far apart they are, and what the page makes of them, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.placement.go_p100_report import Run, Table, page
from experiments.placement.two_prices import kernel_count, moved, regrouped, reordered

GRAPH = SimpleNamespace(
    num_nodes=4, flops=np.array([1.0, 2.0, 3.0, 4.0]), is_fed=np.zeros(4, bool),
    senders=np.array([0, 1, 2]), receivers=np.array([1, 2, 3]),
)  # fmt: skip


def _plan(device=(0, 0, 0, 0), priority=None, group=None):
    arrays = [None if each is None else np.array(each) for each in (device, priority, group)]
    return SimpleNamespace(**dict(zip(("device", "priority", "fusion_group"), arrays, strict=True)))


def test_devices_may_change_their_names():
    assert moved(GRAPH, _plan((0, 0, 1, 1)), _plan((1, 1, 0, 0))) == 0.0
    assert moved(GRAPH, _plan((0, 0, 1, 1)), _plan((1, 0, 0, 0))) == pytest.approx(0.2)
    assert moved(GRAPH, _plan((0, 0, 0, 0)), _plan((0, 1, 2, 3))) == pytest.approx(0.6)


def test_orders_and_kernels_are_compared_by_pairs_and_edges():
    topological = _plan()
    assert reordered(GRAPH, topological, _plan(priority=(9, 7, 5, 3))) == 0.0
    assert reordered(GRAPH, topological, _plan(priority=(1, 2, 3, 4))) == 1.0
    assert reordered(GRAPH, topological, _plan(priority=(3, 4, 2, 1))) == pytest.approx(1 / 6)
    assert regrouped(GRAPH, topological, topological) == 0.0
    one, other = _plan(group=(0, 0, 0, 3)), _plan(group=(0, 1, 1, 1))
    assert regrouped(GRAPH, one, other) == pytest.approx(2 / 3)
    assert [kernel_count(GRAPH, plan) for plan in (topological, one, other)] == [4, 2, 2]


def _run(method, seed, own, swapped):
    """A run whose plans take ``own`` ms by the prices they were found with."""
    judged = {
        "analytical": {"analytical": own[0], "learned:gpus": swapped[0]},
        "learned:gpus": {"analytical": swapped[1], "learned:gpus": own[1]},
    }
    apart = {"analytical": 0.0, "learned:gpus": 0.25}
    return Run("GNMT 2 layers", method, seed, 200, judged, apart, {"analytical": 1.0})


def test_losses_are_by_the_prices_of_the_judge():
    runs = [
        _run("expert", 0, (10.0, 40.0), (40.0, 10.0)),
        _run("heft", 0, (12.0, 30.0), (36.0, 18.0)),
        _run("annealing", 0, (8.0, 32.0), (None, 9.0)),
    ]
    table = Table(runs, ("expert", "heft", "annealing"))
    row = "GNMT 2 layers"
    assert table.loss(row, "heft", "analytical", "learned:gpus") == pytest.approx(36 / 30)
    assert table.loss(row, "heft", "learned:gpus", "analytical") == pytest.approx(18 / 12)
    assert np.isnan(table.loss(row, "annealing", "analytical", "learned:gpus")), "does not fit"
    assert table.best(row, "learned:gpus", "analytical") == 18.0, "HEFT's, best by learned prices"
    text = page(runs, ("expert", "heft", "annealing"), 200, "errors")
    assert "| heft | 1 | 1.200, 3 | 0.750, 1 |" in text
    assert "change their order against *analytical*: 67% of 3 under learned:gpus" in text
    assert "| heft | 1.200 (1.20 to 1.20) | 1.500 (1.50 to 1.50) | 0.25 |" in text


def test_seeds_are_averaged():
    runs = [_run("heft", seed, (ms, ms), (ms, ms)) for seed, ms in ((0, 10.0), (1, 20.0))]
    assert Table(runs, ("heft",)).step("GNMT 2 layers", "heft", "analytical", "analytical") == 15.0
