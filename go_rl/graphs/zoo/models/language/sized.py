"""Language models at any batch and sequence, as PyTorch's implementations of them compute.

Published sizes: BERT-large (Devlin et al. 2018), GPT-2 large (Radford et al. 2019), OPT-1.3B (Zhang
et al. 2022, table 1), GPT-3 XL (Brown et al. 2020, table 2.1, whose 24 heads of 128 do not make its
width of 2048; 16 heads of 128 as in open implementations of it, such as GPT-Neo 1.3B and
Cerebras-GPT 1.3B). Details that decide which kernels are launched follow Hugging Face's code: an
attention mask and exact GELU in BERT, one product for query, key and value and a GELU written out
in GPT, a scaled query and masked scores raised to the least number in OPT, logits of all positions;
in training dropout of a tenth of what is added to residuals and, but for OPT, of embeddings and
weights of attention. A training step is the loss and its gradients: no optimiser's step, as
published times of training are counted (NeuSight, ASPLOS 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration
from go_rl.graphs.zoo.bert import BertConfig, bert
from go_rl.graphs.zoo.models.building import Built, flax_model, integers
from go_rl.graphs.zoo.models.language.transformers import GPT

BERT_LARGE = BertConfig(24, 1024, 16, 4096, exact_gelu=True)
DROPPED = 0.1
"""Dropout rate in training: the default of Hugging Face's configurations of all these networks."""


@dataclass(frozen=True)
class SizedModel:
    """A network at any batch and sequence."""

    family: str
    make: Callable[[int, int], Built]
    """Returns function, abstract arguments and positions of the weights by batch and sequence."""
    longest: int
    """Longest sequence."""
    batch: int = 1
    sequence: int = 256
    """Sizes where none are given."""

    def build(self, batch: int | None = None, sequence: int | None = None) -> Built:
        """Return the network at some sizes.

        Raises:
            ReadError: the sequence is longer than the model takes.
        """
        length = self.sequence if sequence is None else sequence
        if length > self.longest:
            raise ReadError(f"sequence={length}: the model has {self.longest} positions")
        return self.make(self.batch if batch is None else batch, length)


def written_out_gelu(x: Any) -> Any:
    """Return GPT-2's GELU (`gelu_new` of Hugging Face), which PyTorch launches piece by piece."""
    inner = (2 / jnp.pi) ** 0.5 * (x + 0.044715 * jnp.power(x, 3.0))
    return 0.5 * x * (1.0 + jnp.tanh(inner))


def decoder_training(built: Built) -> Built:
    """Return a step of next-token training: cross-entropy and its gradients."""
    forward, (params, tokens), weights = built

    def loss(params: Any, tokens: Any, labels: Any) -> Any:
        return _cross_entropy(forward(params, tokens), labels)

    return TrainingIteration(jax.value_and_grad(loss)), (params, tokens, tokens), weights


def _masked_training(batch: int, sequence: int) -> Built:
    """A step of BERT's masked language model."""
    config = replace(BERT_LARGE, dropout=DROPPED)
    forward, args, weights = bert(config, batch, sequence, mlm_head=True)

    def loss(params: Any, ids: Any, types: Any, mask: Any, labels: Any) -> Any:
        return _cross_entropy(forward(params, ids, types, mask), labels)

    return TrainingIteration(jax.value_and_grad(loss)), (*args, args[1]), weights


def _cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -chosen.mean()


def decoder(module: nn.Module) -> Callable[[int, int], Built]:
    """Return the forward pass of a module over tokens, by batch and sequence."""
    return lambda batch, sequence: flax_model(module, integers(batch, sequence))


def _gpt(layers: int, width: int, heads: int, positions: int) -> GPT:
    return GPT(layers, width, heads, positions=positions, activation=written_out_gelu,
               attention={"joint": True})  # fmt: skip


def in_training(model: GPT) -> GPT:
    """Return a decoder with the dropout that it has in training."""
    options = dict(model.attention or {})
    if options.get("scaled_query"):
        return model.clone(dropout=DROPPED)
    attention = {**options, "dropout": DROPPED}
    return model.clone(dropout=DROPPED, embedding_dropout=DROPPED, attention=attention)


def _opt(**attention: bool) -> GPT:
    return GPT(24, 2048, 32, vocabulary=50272, positions=2050, activation=nn.relu,
               attention={"scaled_query": True, **attention})  # fmt: skip


_DECODERS = {
    "gpt2-large": ("gpt", _gpt(36, 1280, 20, 1024), 1024),
    "opt-1.3b": ("opt", _opt(floored=True), 2048),
    "gpt3-xl": ("gpt", _gpt(24, 2048, 16, 2048), 2048),
}
"""Family, module and longest sequence."""


def _sized() -> Mapping[str, SizedModel]:
    found = {
        "bert-large": SizedModel(
            "bert", lambda batch, sequence: bert(BERT_LARGE, batch, sequence), 512, 1, 384
        ),
        "bert-large-training": SizedModel("bert", _masked_training, 512, 1, 384),
    }
    for name, (family, module, longest) in _DECODERS.items():
        found[name] = SizedModel(family, decoder(module), longest)
        make = decoder(in_training(module))
        found[f"{name}-training"] = SizedModel(
            family, lambda b, s, make=make: decoder_training(make(b, s)), longest
        )
    return MappingProxyType(found)


SIZED = _sized()
"""Networks by name."""
FROZEN = MappingProxyType({
    "opt-1.3b": SizedModel("opt", decoder(_opt()), 2048), "gpt3-xl": SIZED["gpt3-xl"],
})  # fmt: skip
"""Models whose graphs at the sizes they start from are frozen; OPT's without
`Attention.floored`."""
