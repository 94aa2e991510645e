"""Networks traced at any batch and sequence: published sizes, names, what is refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from go_rl import load
from go_rl.core import ReadError, ZooError
from go_rl.graphs.zoo import load_model as loading
from go_rl.graphs.zoo import zoo_names
from go_rl.graphs.zoo.models.language.sized import (
    FROZEN,
    SIZED,
    SizedModel,
    decoder,
    decoder_training,
    written_out_gelu,
)
from go_rl.graphs.zoo.models.language.transformers import GPT


def test_names_are_known_without_jax():
    assert set(loading.SIZED_NAMES) == set(SIZED)
    assert set(FROZEN) < set(zoo_names("extra"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opt-1.3b", "gpt3-xl"])
def test_parameters_are_as_published(name):
    """1,316 million of the released OPT-1.3B; 1.3 billion, Brown et al. 2020, table 2.1."""
    _, args, weights = SIZED[name].build()
    total = sum(x.size for i in weights for x in jax.tree.leaves(args[i]))
    assert total / 1e6 == pytest.approx(1316, rel=0.005)


def test_sizes_reach_the_graph(monkeypatch):
    small = SizedModel("gpt", decoder(GPT(1, 16, 2, 30, 16)), 16)
    training = SizedModel("gpt", lambda b, s: decoder_training(small.build(b, s)), 16)
    both = {"opt-1.3b": small, "opt-1.3b-training": training}
    monkeypatch.setattr("go_rl.graphs.zoo.models.language.sized.SIZED", both)
    graph = load("zoo:opt-1.3b", {"batch": 3, "sequence": 8})
    logits = graph.output_shape[np.flatnonzero(graph.is_output)[0]]
    assert [s for s in logits.tolist() if s >= 0] == [3, 8, 30]
    assert graph.meta["dims"] == {"batch": 3, "sequence": 8}
    trained = load("zoo:opt-1.3b-training", {"sequence": 4})
    assert trained.is_backward.any()
    assert trained.output_shape[0].tolist()[:2] == [1, 4]


def test_the_written_out_gelu_is_the_hyperbolic_one():
    x = np.linspace(-4, 4, 33, dtype=np.float32)
    expected = jax.nn.gelu(x, approximate=True)
    np.testing.assert_allclose(written_out_gelu(x), expected, atol=1e-6)


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
