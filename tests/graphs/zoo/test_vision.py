"""The vision networks have their published sizes and compute what they should."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables

from go_rl.graphs.zoo.models.building import floats, key
from go_rl.graphs.zoo.models.vision.amoebanet import AmoebaNetD, FactorizedReduction
from go_rl.graphs.zoo.models.vision.convdraw import ConvDRAW
from go_rl.graphs.zoo.models.vision.dense_prediction import SSD, UNet
from go_rl.graphs.zoo.models.vision.vision_transformers import _shift_mask


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "filters", "millions"), [(18, 208, 82), (18, 416, 318)])
def test_amoebanet_has_the_parameters_of_gpipe(layers, filters, millions):
    """Huang et al. 2019, table 1."""
    variables = jax.eval_shape(AmoebaNetD(layers, filters).init, key(), floats(1, 224, 224, 3))
    count = sum(math.prod(x.shape) for x in jax.tree.leaves(variables["params"]))
    assert count / 1e6 == pytest.approx(millions, rel=0.01)


@pytest.mark.parametrize(("lite", "boxes"), [(False, 8732), (True, 1917)])
def test_ssd_predicts_the_published_number_of_boxes(lite, boxes):
    module = SSD(lite=lite)
    found, _ = jax.eval_shape(module.init_with_output, key(), floats(2, 300, 300, 3))
    assert [x.shape for x in found] == [(2, boxes, 4), (2, boxes, 21)]


def test_unet_has_the_published_parameters_and_keeps_the_resolution():
    module = UNet()
    found, variables = jax.eval_shape(module.init_with_output, key(), floats(1, 64, 48, 1))
    assert found.shape == (1, 64, 48, 2)
    count = sum(math.prod(x.shape) for x in jax.tree.leaves(variables["params"]))
    assert count / 1e6 == pytest.approx(31.0, rel=0.01)  # Ronneberger et al. 2015 reimplemented


def test_a_factorized_reduction_sees_even_and_odd_pixels():
    module = FactorizedReduction(2)
    image = jnp.arange(16.0).reshape(1, 4, 4, 1)
    variables = jax.tree.map(jnp.ones_like, random_variables(module.init, image))
    found = module.apply(variables, image)
    bias, spread = 1.0, math.sqrt(1.0 + 1e-5)
    even, odd = np.array([[0, 2], [8, 10]]), np.array([[5, 7], [13, 15]])
    expected = (np.stack([even, odd], -1) - 1.0) / spread + bias
    np.testing.assert_allclose(np.asarray(found)[0], expected, rtol=1e-5, atol=1e-6)


def test_shift_mask_parts_only_what_rolling_joined():
    """A 4 × 4 image in windows of 2, rolled by 1: an axis's last window holds two regions."""
    mask = np.asarray(_shift_mask(4, 4, 2, 1))[:, 0]
    assert mask.shape == (4, 4, 4)
    assert not mask[0].any(), "the first window is whole"
    columns_apart = np.array([[0, 1, 0, 1], [1, 0, 1, 0]] * 2, bool)
    np.testing.assert_array_equal(mask[1] < 0, columns_apart)
    np.testing.assert_array_equal(mask[2] < 0, np.kron(1 - np.eye(2), np.ones((2, 2))) > 0)
    np.testing.assert_array_equal(mask[3] < 0, ~np.eye(4, dtype=bool))


def test_convdraw_pays_nothing_when_posterior_and_prior_agree():
    module = ConvDRAW(steps=2, features=4, latents=2)
    image = jnp.ones((2, 8, 8, 3)) / 4
    variables = random_variables(module.init, image)
    apply = jax.jit(module.apply)
    drawn, cost = apply(variables, image)
    assert drawn.shape == image.shape
    assert (np.asarray(cost) > 0).all()
    drawn, cost = apply(jax.tree.map(jnp.zeros_like, variables), image)
    np.testing.assert_allclose(drawn, 0.5)
    np.testing.assert_allclose(cost, np.zeros(2))
