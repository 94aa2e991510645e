"""Networks traced at any batch and sequence: published sizes, names, what is refused."""

from __future__ import annotations

import jax
import pytest

from go_rl import load
from go_rl.core import ReadError, ZooError
from go_rl.graphs.zoo.models.language.sized import (
    SIZED,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opt-1.3b", "gpt3-xl"])
def test_parameters_are_as_published(name):
    """1,316 million of the released OPT-1.3B; 1.3 billion, Brown et al. 2020, table 2.1."""
    _, args, weights = SIZED[name].build()
    total = sum(x.size for i in weights for x in jax.tree.leaves(args[i]))
    assert total / 1e6 == pytest.approx(1316, rel=0.005)


@pytest.mark.parametrize(
    ("name", "dims", "message"),
    [
        ("bert-large", {"batches": 8}, "no dimension 'batches'; did you mean 'batch'"),
        ("bert-large", {"sequence": 513}, "zoo:bert-large: sequence=513: the model has 512"),
        ("gpt2-large", {"batch": -1}, "batch"),
        ("gpt2-large", {"batch": 0}, "batch"),
        ("resnet50", {"batch": 8}, "frozen, without symbolic dimensions, so 'batch' cannot"),
    ],
)
def test_dimensions_that_a_network_lacks(name, dims, message):
    with pytest.raises(ReadError, match=message):
        load(f"zoo:{name}", dims)


def test_misspelt_names():
    with pytest.raises(ZooError, match="did you mean 'gpt3-xl'"):
        load("zoo:gpt3xl", {"batch": 2})
    with pytest.raises(ZooError, match=r"did you mean 'opt-1\.3b-training'"):
        load("zoo:opt-1.3b-trainin")
