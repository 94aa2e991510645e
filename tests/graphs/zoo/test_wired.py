"""RandWire, FractalNet, HRNet, BiFPN, the grid LSTM and the multi-tower network."""

from __future__ import annotations

import math
from itertools import pairwise

import jax
import numpy as np
import pytest

from go_rl.graphs.zoo import zoo_entry, zoo_graph
from go_rl.graphs.zoo.models.building import floats, integers, key
from go_rl.graphs.zoo.models.language.recurrent import GridLSTM
from go_rl.graphs.zoo.models.tabular.recommenders import MultiTower
from go_rl.graphs.zoo.models.vision.wired import BiFPN, FractalNet, HRNet, RandWire, small_world


def _parameters(module, *inputs):
    variables = jax.eval_shape(module.init, key(), *inputs)
    return sum(math.prod(x.shape) for x in jax.tree.leaves(variables["params"]))


def test_a_small_world_has_the_edges_of_its_ring_and_runs_upwards():
    for seed in range(5):
        producers = small_world(32, seed)
        assert sum(map(len, producers)) == 32 * 4 // 2
        assert all(source < v for v, sources in enumerate(producers) for source in sources)
        assert all(len(set(sources)) == len(sources) for sources in producers)
    assert small_world(32, 0) == small_world(32, 0) != small_world(32, 1)


def test_few_edges_of_a_small_world_stay_on_the_ring():
    """Three in four are drawn anew; of 31 others about two are neighbours by chance."""
    hops = [min(v - u, 200 + u - v) for v, us in enumerate(small_world(200, 3)) for u in us]
    near = np.mean(np.array(hops) <= 2)
    assert 0.18 < near < 0.36


def test_randwire_has_the_published_size():
    """Xie et al. 2019, table 3: 31.9 million in the regular regime, over random graphs."""
    count = _parameters(RandWire(109, seed=2), floats(1, 224, 224, 3))
    assert count / 1e6 == pytest.approx(31.9, rel=0.03)


def test_a_fractal_block_has_columns_of_doubling_depth():
    """2^c - 1 convolutions of c columns; four blocks of four columns."""
    module = FractalNet(4, (8, 8, 8, 8))
    variables = jax.eval_shape(module.init, key(), floats(1, 32, 32, 3))
    convolutions = [name for name in variables["params"] if name.startswith("Conv")]
    assert len(convolutions) == 4 * (2**4 - 1)


def test_hrnet_ends_with_four_branches_at_doubling_widths():
    head = jax.eval_shape(HRNet(8, (1, 1, 1), 1).init, key(), floats(1, 64, 64, 3))
    assert head["params"]["Dense_0"]["kernel"].shape == (8 + 16 + 32 + 64, 1000)


def test_bifpn_predicts_at_every_level():
    found, _ = jax.eval_shape(BiFPN(16, 2).init_with_output, key(), floats(1, 256, 256, 3))
    sizes = [boxes.shape[1] for _, boxes in found]
    assert sizes == [32, 16, 8, 4, 2]
    assert all(classes.shape[-1] == 9 and boxes.shape[-1] == 36 for classes, boxes in found)


def test_grid_lstm_cells_are_shared_over_the_grid():
    """Two LSTMs a layer, each of 2 w inputs and w states; embeddings and head."""
    width, words = 6, 10
    cell = (3 * width) * 4 * width + 4 * width
    expected = 2 * 2 * cell + 2 * words * width + width * words + words
    tokens = integers(1, 3)
    assert _parameters(GridLSTM(2, width, words), tokens, tokens) == expected


def test_every_head_of_multi_tower_weighs_every_expert():
    network = MultiTower(2, 1, 5, 4, experts=3, heads=2)
    rows = integers(1, 2, 1, 1)
    towers = [(13 + 4, 256, 128), (13 + 4, 512, 512, 128)]
    dense = [*towers, *[(2 * 128, 512, 256)] * 3, *[(128, 3)] * 2, *[(256, 128, 1)] * 2]
    expected = sum(a * b + b for widths in dense for a, b in pairwise(widths)) + 2 * 5 * 4
    assert _parameters(network, floats(1, 13), rows) == expected


@pytest.mark.parametrize("name", ["randwire-32", "fractalnet-4", "multi-tower-8", "hrnet-w18"])
def test_branches_join_again(name):
    """No part of a frozen graph is cut off: all flows into the results."""
    graph = zoo_graph(name)
    assert zoo_entry(name).split == "extra"
    read = np.bincount(graph.senders, minlength=graph.num_nodes) > 0
    assert (read | graph.is_output).all()
