"""The networks over text and sound have their sizes, and trace to the graphs they should."""

import jax
import pytest

from go_rl.graphs.zoo.models.building import flax_model, integers
from go_rl.graphs.zoo.models.language.recurrent import GNMT


def _count(built):
    """Number of parameters of what is built."""
    return sum(x.size for x in jax.tree.leaves(built[1][0]))


@pytest.mark.parametrize("layers", [2, 4, 8])
def test_gnmt_parameters_by_hand(layers):
    wide, inner = 4 * 1024 * 3 * 1024 + 4096, 4 * 1024 * 2 * 1024 + 4096
    encoder = 2 * inner + wide + (layers - 2) * inner
    attention = 2 * 1024 * 1024 + 1024
    tables = 2 * 16000 * 1024 + 1024 * 16000 + 16000
    by_hand = encoder + layers * wide + attention + tables
    built = flax_model(GNMT(layers), integers(1, 2), integers(1, 2))
    assert _count(built) == by_hand
