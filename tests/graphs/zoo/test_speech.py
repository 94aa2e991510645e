"""The networks over sound have their published sizes, and read only what they may."""

from collections import Counter

import jax
import numpy as np
import pytest
from graphs.zoo.built import parameter_count, traced_entry

from go_rl.graphs.zoo.models.audio.networks import WaveNet, WaveRNN
from go_rl.graphs.zoo.models.audio.speech import ENTRIES
from go_rl.graphs.zoo.models.building import flax_model, floats

BY_NAME = {entry.name: entry for entry in ENTRIES}


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("conformer-l", 115),  # Gulati et al. 2020, table 1: 118.8 with a decoder of 3.5
        ("wav2vec2-base", 95),  # Baevski et al. 2020, section 4.2
        ("whisper-tiny", 37.2),  # openai/whisper tiny: 39 M names it, 37,184,640 are trained
        ("whisper-base", 71.8),
    ],
)
def test_parameters_are_as_published(name, millions):
    assert parameter_count(BY_NAME[name].build()) / 1e6 == pytest.approx(millions, rel=0.01)


def test_wavernn_parameters_by_hand():
    width, half = 896, 448
    by_hand = width * 3 * width + 82 * 3 * width + 2 * (half * half + half * 256)
    assert parameter_count(flax_model(WaveRNN(width), floats(2, 1, 80))) == by_hand


@pytest.mark.parametrize(("stacks", "layers", "field"), [(1, 3, 8), (2, 4, 7)])
def test_wavenet_sees_its_receptive_field_of_the_past(stacks, layers, field):
    """1 + sum of dilations: 1 + (1 + 2 + 4) for one stack of three layers."""
    model = WaveNet(stacks, layers, residual=4, skip=4)
    rng = np.random.default_rng(0)
    calm = rng.normal(size=(24, 1))
    changed = np.concatenate([calm[None], calm + np.eye(24)[..., None]]).astype(np.float32)
    shapes = jax.eval_shape(model.init, jax.random.key(1), changed)
    variables = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), shapes)
    at_20 = np.asarray(jax.jit(model.apply)(variables, changed))[:, 20]
    seen = np.flatnonzero((at_20[1:] != at_20[0]).any(axis=-1))
    assert seen.tolist() == list(range(21 - field, 21))


@pytest.mark.parametrize(("name", "layers"), [("wavenet-2x18", 18), ("wavenet-4x36", 36)])
def test_wavenet_has_a_gate_and_a_skip_in_each_layer(name, layers):
    operators = Counter(traced_entry(ENTRIES, name).op_type)
    assert operators["tanh"] == operators["logistic"] == layers
    assert operators["conv_general_dilated"] == 1 + layers * 2 + (layers - 1) + 2


def test_wavernn_is_written_out_step_by_step():
    graph = traced_entry(ENTRIES, "wavernn-896")
    assert Counter(graph.op_type)["tanh"] == 40
    assert "scan" not in graph.op_type


@pytest.mark.parametrize(
    ("name", "nodes"), [("wavenet-1x10", 154), ("whisper-tiny", 805), ("wavernn-896", 1277)]
)
def test_node_counts(name, nodes):
    assert traced_entry(ENTRIES, name).num_nodes == nodes


@pytest.mark.slow
def test_deepspeech_is_written_out_step_by_step():
    graph = traced_entry(ENTRIES, "deepspeech2")
    assert 3_000 < graph.num_nodes < 6_000
    assert Counter(graph.op_type)["tanh"] == 2 * 30 * 2 * 5


def test_training_forms_are_the_wavenets_of_go():
    trained = {entry.name for entry in ENTRIES if entry.training}
    assert trained == {"wavenet-2x18-training", "wavenet-4x36-training"}
    graph = traced_entry(ENTRIES, "wavenet-2x18-training")
    assert 0.4 < graph.is_backward.mean() < 0.8
