"""`ProgramNetwork`: CDMPP's predictor of a tensor program (section 5.1).

    leaf vectors + positional encoding → Transformer encoder, as wide as a leaf vector → flattened
    → input layer and embedding layers of the leaf count → z_x;  device numbers → layers → z_v;
    z = tanh(z_x ⊗ z_v) → decoder → label

Programs of one leaf count form a batch, so that nothing is padded. The latent z holds program and
device, so that the central moment discrepancy of z can align devices too; tanh bounds it, since
that discrepancy needs an interval. The last biases of z_v begin at 1, and so z at tanh(z_x): a
product of small numbers learns late.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, LESS_THAN_ALL, check_ranges
from go_rl.costs.learning.training import initial_params
from go_rl.costs.programs.features import LEAF_NUMBERS
from go_rl.costs.programs.learn.examples import TARGET_FEATURES


@dataclass(frozen=True)
class ProgramNetworkConfig:
    """Sizes of a `ProgramNetwork`."""

    leaf_counts: tuple[int, ...] = ()
    """Leaf counts that have layers of their own; set by training."""
    leaf_numbers: int = LEAF_NUMBERS
    """Numbers of a leaf: the paper's 164, or `WIDE_NUMBERS` with those of its code."""
    encoder_layers: int = 2
    heads: int = 4
    """Attention heads; they share the numbers of a leaf evenly."""
    feedforward_units: int = 128
    """Hidden units of the two layers inside an encoder layer."""
    input_units: int = 64
    """Outputs of a leaf count's first layer, which reads the encoded leaves flattened."""
    embedding_layers: tuple[int, ...] = (64,)
    """Hidden units of a leaf count's layers after the first."""
    embedding: int = 48
    """Numbers of a latent."""
    device_layers: tuple[int, ...] = (16,)
    decoder_layers: tuple[int, ...] = (96, 96)
    dropout: float = 0.0
    """Share of the latent's inputs and the decoder's that an update drops."""

    def __post_init__(self) -> None:
        sizes = (
            "input_units", "encoder_layers", "heads", "feedforward_units", "leaf_numbers",
            "embedding", "embedding_layers", "device_layers", "decoder_layers",
        )  # fmt: skip
        check_ranges(
            self,
            "program network",
            TrainingError,
            dropout=LESS_THAN_ALL,
            **dict.fromkeys(sizes, COUNT),
        )
        if self.leaf_numbers % self.heads:
            raise TrainingError(
                f"program network: leaf_numbers ({self.leaf_numbers}) must be a multiple of heads "
                f"({self.heads})"
            )

    @property
    def program_layers(self) -> tuple[int, ...]:
        """Outputs of the layers of one leaf count."""
        return (self.input_units, *self.embedding_layers, self.embedding)


SMALL = ProgramNetworkConfig()
"""The one whose weights ship."""
PAPER = ProgramNetworkConfig(
    encoder_layers=11, heads=4, feedforward_units=2048, input_units=716,
    embedding_layers=(985, 985, 985), embedding=69, device_layers=(128, 128, 128),
    decoder_layers=(930, 930, 930),
)  # fmt: skip
"""CDMPP's Table 6; 13.8 M parameters with the layers of one leaf count, 5. The table does not state
the hidden units of encoder layers, which are the default of the authors' library."""


class ProgramBatch(NamedTuple):
    """``B`` programs of ``L`` leaves each."""

    leaves: Any
    """[B, L, N] standardised leaf vectors, the positional encoding added."""
    devices: Any
    """[B, D] standardised numbers of their targets, 0 where unknown."""
    known: Any
    """[B, D] 1 where the number is known."""


class ProgramNetwork(nn.Module):
    """Program network of this module; outputs are standardised labels."""

    config: ProgramNetworkConfig

    @nn.compact
    def __call__(
        self, batch: ProgramBatch, dropout: bool = False
    ) -> tuple[Float[Array, "B"], Float[Array, "B E"]]:
        """Return [B] outputs and [B, E] latents."""
        config, x = self.config, batch.leaves
        for i in range(config.encoder_layers):
            x = EncoderLayer(config, name=f"encoder_{i}")(x)
        x = nn.LayerNorm(name="encoded")(x)
        drop = nn.Dropout(config.dropout, deterministic=not dropout)
        flat = drop(x.reshape(x.shape[0], -1))
        name = leaf_layers(batch.leaves.shape[1])
        z_program = Layers(config.program_layers, name=name)(flat)
        device = jnp.concatenate([batch.devices, batch.known], axis=-1)
        z_device = Layers((*config.device_layers, config.embedding), last_bias=1.0, name="device")(
            device
        )
        z = nn.tanh(z_program * z_device)
        return Layers((*config.decoder_layers, 1), name="decoder")(drop(z))[:, 0], z


class EncoderLayer(nn.Module):
    """A pre-norm Transformer encoder layer (Xiong et al. 2020): trains without a long warm-up."""

    config: ProgramNetworkConfig

    @nn.compact
    def __call__(self, x: Float[Array, "B L U"]) -> Float[Array, "B L U"]:
        """Return what self-attention and two layers add to each leaf."""
        config = self.config
        seen = nn.LayerNorm(name="before_attention")(x)
        x = x + nn.MultiHeadDotProductAttention(config.heads, name="attention")(seen, seen)
        seen = nn.LayerNorm(name="before_layers")(x)
        inner = nn.gelu(nn.Dense(config.feedforward_units, name="inner")(seen))
        return x + nn.Dense(config.leaf_numbers, name="outer")(inner)


class Layers(nn.Module):
    """Dense layers with GELU between them."""

    sizes: tuple[int, ...]
    last_bias: float = 0.0
    """Initial biases of the last layer."""

    @nn.compact
    def __call__(self, x: Float[Array, "... N"]) -> Float[Array, "... M"]:
        """Return the last layer's outputs."""
        for i, size in enumerate(self.sizes):
            bias = self.last_bias if i == len(self.sizes) - 1 else 0.0
            layer = nn.Dense(size, bias_init=nn.initializers.constant(bias), name=f"dense_{i}")
            x = layer(nn.gelu(x) if i else x)
        return x


def leaf_layers(leaves: int) -> str:
    """Return the name of the parameters that programs of this many leaves have of their own."""
    return f"leaves_{leaves}"


def empty_batch(leaves: int, leaf_numbers: int = LEAF_NUMBERS) -> ProgramBatch:
    """Return a batch of one program; parameters' shapes follow from it."""
    numbers = jnp.zeros((1, len(TARGET_FEATURES)), jnp.float32)
    return ProgramBatch(jnp.zeros((1, leaves, leaf_numbers), jnp.float32), numbers, numbers)


def initial_program_params(config: ProgramNetworkConfig, key: Array) -> Any:
    """Return random parameters, with layers for every leaf count.

    Raises:
        TrainingError: there is no leaf count.
    """
    if not config.leaf_counts:
        raise TrainingError("program network: no leaf count has layers")
    first = config.leaf_counts[0]
    shared = replace(config, leaf_counts=())
    batch = empty_batch(first, config.leaf_numbers)
    merged = dict(initial_params(ProgramNetwork(shared), key, batch)["params"])
    own = Layers(config.program_layers)
    for leaves in config.leaf_counts[1:]:
        flat = jnp.zeros((1, leaves * config.leaf_numbers), jnp.float32)
        found = initial_params(own, jax.random.fold_in(key, leaves), flat)
        merged[leaf_layers(leaves)] = found["params"]
    return {"params": merged}
