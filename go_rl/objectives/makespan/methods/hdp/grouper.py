"""HDP's grouper: a feed-forward network that assigns every operator to a group (Mirhoseini et al.
2018, section 3.1).

Dimension letters: ``N`` operators, ``G`` groups, ``M`` groupings.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from go_rl.objectives.makespan.methods.hdp.features import SIZES, TYPES, OpFeatures, columns

Params = dict[str, Any]


class Grouper(nn.Module):
    """One hidden layer, then a softmax over groups."""

    groups: int
    """Number of groups G."""
    hidden: int
    """Width of the hidden layer."""
    published: bool = False
    """Use the authors' published form: two matrices on raw numbers, without bias or activation."""
    prior: float = 0.0
    """Bonus on the logit of the run that an operator is in."""

    @nn.compact
    def __call__(self, ops: OpFeatures) -> Float[Array, "N G"]:
        """Return [N, G] logits."""
        if self.published:
            glorot = nn.initializers.glorot_uniform()
            dense = partial(nn.Dense, use_bias=False, kernel_init=glorot)
            seen = dense(self.hidden, name="numbers")(ops.numbers)
            logits = dense(self.groups, name="groups")(seen)
        else:
            seen = nn.Embed(TYPES, self.hidden, name="op_type")(ops.op_type)
            seen = nn.relu(seen + nn.Dense(self.hidden, name="numbers")(ops.numbers))
            logits = nn.Dense(self.groups, name="groups")(seen)
        return logits + self.prior * jax.nn.one_hot(ops.run, self.groups)


@partial(jax.jit, static_argnums=(0, 1))
def new_grouper(grouper: Grouper, adjacency: int, key: Array) -> Params:
    """Return fresh parameters; they depend on no graph."""
    ops = OpFeatures(
        op_type=np.zeros(1, np.int32),
        sizes=np.zeros((1, SIZES), np.float32),
        numbers=np.zeros((1, columns(adjacency, grouper.published)), np.float32),
        run=np.zeros(1, np.int32),
    )
    return cast(Params, grouper.init(key, ops))


def noisy(logits: Float[Array, "*X"], key: Array, noise: Float[Array, ""]) -> Float[Array, "*X"]:
    """Add Gaussian noise of ``noise`` times the root mean square of the logits."""
    size = jnp.sqrt(jnp.square(logits).mean())
    return logits + jax.lax.stop_gradient(noise * size * jax.random.normal(key, logits.shape))


@partial(jax.jit, static_argnums=(0, 5))
def draw_groups(
    grouper: Grouper,
    params: Params,
    ops: OpFeatures,
    key: Array,
    noise: Float[Array, ""],
    groupings: int,
) -> Int[Array, "M N"]:
    """Draw [M, N] groups, by inverting the distribution function of each operator's softmax.

    All groupings of one draw share the noise on the logits: they come from one distribution.
    """
    log_probs = _log_probs(grouper, params, ops, key, noise)
    upto = jnp.cumsum(jnp.exp(log_probs), axis=-1)
    where = jax.random.uniform(jax.random.fold_in(key, 1), (groupings, log_probs.shape[0]))
    where = where * upto[:, -1]
    found = jax.vmap(partial(jnp.searchsorted, side="right"), in_axes=(0, 1), out_axes=1)
    return jnp.minimum(found(upto, where), grouper.groups - 1)


@partial(jax.jit, static_argnums=0)
def grouper_gradient(
    grouper: Grouper,
    params: Params,
    ops: OpFeatures,
    key: Array,
    noise: Float[Array, ""],
    group: Int[Array, "M N"],
    advantage: Float[Array, "M"],
) -> Params:
    """Return the gradient of -mean(advantage * log p(grouping)); ``key`` and ``noise`` are those of
    the draw."""

    def loss(params: Params) -> Float[Array, ""]:
        log_probs = _log_probs(grouper, params, ops, key, noise)
        chosen = jnp.take_along_axis(log_probs, group.T, axis=-1).sum(axis=0)
        return -(advantage * chosen).mean()

    return jax.grad(loss)(params)


def _log_probs(
    grouper: Grouper, params: Params, ops: OpFeatures, key: Array, noise: Float[Array, ""]
) -> Float[Array, "N G"]:
    logits = cast(Array, grouper.apply(params, ops))
    return jax.nn.log_softmax(noisy(logits, jax.random.fold_in(key, 0), noise))
