"""Plans under two prices: how far apart they are, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.programs.two_prices import kernel_count, moved, regrouped, reordered

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
