"""Pricing a graph's operators: equal ones once."""

from __future__ import annotations

import numpy as np
from costs.kernels.kernels import few_kernels

from experiments.kernels.learned_pricing_speed import median, whole
from go_rl.costs.models.kernel_cache import KernelCache


def test_equal_operators_are_priced_once():
    graph = few_kernels().graph
    asked = []

    def seconds(kernels):
        asked.extend(kernels.hashes)
        return np.arange(1.0, kernels.num_kernels + 1)

    prices = KernelCache().seconds(whole(graph), seconds)
    assert len(set(asked)) == len(asked) == len(set(prices[prices > 0].tolist()))
    assert len(asked) < (~graph.is_fed).sum()
    assert prices.shape == (graph.num_nodes,)


def test_the_first_run_is_left_out():
    runs = []
    assert median(lambda: runs.append(1), 3) >= 0
    assert len(runs) == 4
