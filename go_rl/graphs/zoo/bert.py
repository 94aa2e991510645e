"""BERT-base as a plain JAX function (BERT, Devlin et al. 2018, section 3): 110 M parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.core.errors import ReadError
from go_rl.graphs.zoo.models.building import dropout

Params = Mapping[str, Any]


@dataclass(frozen=True)
class BertConfig:
    """Sizes of the encoder; the defaults are BERT-base, uncased."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    feed_forward: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    token_types: int = 2
    exact_gelu: bool = False
    """GELU by the error function, as PyTorch's BERT has it, instead of the hyperbolic tangent."""
    dropout: float = 0.0
    """Dropout rate in training, of embeddings, weights of attention and terms added to the
    residual."""

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ReadError(f"hidden {self.hidden} must be a multiple of heads {self.heads}")


def bert_base(
    batch: int = 1, sequence: int = 128, layers: int = 12, mlm_head: bool = False
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]:
    """Return BERT-base with an attention mask; see `bert`."""
    return bert(BertConfig(layers=layers), batch, sequence, mlm_head=mlm_head)


def bert(
    config: BertConfig,
    batch: int = 1,
    sequence: int = 128,
    *,
    masked: bool = True,
    mlm_head: bool = False,
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]:
    """Return ``(function, abstract args, positions of weights)`` of the encoder's forward pass.

    The function maps parameters, token ids, token types and attention mask (all [batch, sequence],
    int32) to the last hidden states [batch, sequence, hidden] and the pooled output
    [batch, hidden]; with ``mlm_head`` to the logits over the vocabulary (tied embedding) instead.
    Without ``masked`` there is no attention mask: every sequence has full length, and nothing but
    the hidden states joins one layer to the next.
    """
    if not 1 <= sequence <= config.positions:
        raise ReadError(f"bert: sequence {sequence} must be 1..{config.positions}")
    tokens = jax.ShapeDtypeStruct((batch, sequence), jnp.int32)
    parameters = bert_parameters(config, mlm_head)

    def bert(params: Params, token_ids: Any, token_types: Any, attention_mask: Any = None) -> Any:
        states = encode(params, config, token_ids, token_types, attention_mask)
        if mlm_head:
            return _mlm_logits(params, config, states)
        return states, jnp.tanh(_dense(params["pooler"], states[:, 0]))

    return bert, (parameters, *[tokens] * (3 if masked else 2)), (0,)


def bert_parameters(config: BertConfig, mlm_head: bool = False) -> dict[str, Any]:
    """Return the abstract float32 parameters, shaped and named as in the paper's release."""
    h, f = config.hidden, config.feed_forward
    embeddings = {
        "word": _array(config.vocabulary, h),
        "position": _array(config.positions, h),
        "token_type": _array(config.token_types, h),
        "norm": _norm_parameters(h),
    }
    layers = {f"layer_{i}": _layer_parameters(h, f) for i in range(config.layers)}
    parameters = {"embeddings": embeddings, "encoder": layers, "pooler": _dense_parameters(h, h)}
    if mlm_head:
        del parameters["pooler"]
        transform = {**_dense_parameters(h, h), "norm": _norm_parameters(h)}
        parameters["mlm"] = {**transform, "logit_bias": _array(config.vocabulary)}
    return parameters


def encode(
    params: Params, config: BertConfig, token_ids: Any, token_types: Any, attention_mask: Any
) -> Any:
    """Return the last hidden states, [batch, sequence, hidden]; mask None: full length."""
    tables = params["embeddings"]
    with jax.named_scope("embeddings"):
        word = jnp.take(tables["word"], token_ids, axis=0, mode="clip")
        kind = jnp.take(tables["token_type"], token_types, axis=0, mode="clip")
        place = tables["position"][: token_ids.shape[1]]
        states = dropout(_layer_norm(tables["norm"], word + kind + place), config.dropout)
    bias = None
    if attention_mask is not None:
        bias = (1.0 - attention_mask[:, None, None, :].astype(jnp.float32)) * -1e9
    for i in range(config.layers):
        with jax.named_scope(f"encoder/layer_{i}"):
            states = _layer(params["encoder"][f"layer_{i}"], config, states, bias)
    return states


def _layer(params: Params, config: BertConfig, states: Any, bias: Any) -> Any:
    with jax.named_scope("attention"):
        attended = _attention(params["attention"], config, states, bias)
        states = _layer_norm(params["attention"]["norm"], states + attended)
    with jax.named_scope("feed_forward"):
        hidden = _gelu(config, _dense(params["intermediate"], states))
        inner = dropout(_dense(params["output"], hidden), config.dropout)
        return _layer_norm(params["output"]["norm"], states + inner)


def _gelu(config: BertConfig, x: Any) -> Any:
    return jax.nn.gelu(x, approximate=not config.exact_gelu)


def _attention(params: Params, config: BertConfig, states: Any, bias: Any) -> Any:
    batch, sequence, hidden = states.shape
    heads = config.heads

    def split(name: str) -> Any:
        return _dense(params[name], states).reshape(batch, sequence, heads, hidden // heads)

    query, key, value = split("query"), split("key"), split("value")
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (hidden // heads) ** 0.5
    if bias is not None:
        scores = scores + bias
    weights = dropout(jax.nn.softmax(scores), config.dropout)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return dropout(_dense(params["output"], mixed.reshape(batch, sequence, hidden)), config.dropout)


def _mlm_logits(params: Params, config: BertConfig, states: Any) -> Any:
    head = params["mlm"]
    with jax.named_scope("mlm"):
        states = _layer_norm(head["norm"], _gelu(config, _dense(head, states)))
        return states @ params["embeddings"]["word"].T + head["logit_bias"]


def _dense(params: Params, x: Any) -> Any:
    return x @ params["kernel"] + params["bias"]


def _layer_norm(params: Params, x: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-12) * params["scale"] + params["bias"]


def _layer_parameters(hidden: int, feed_forward: int) -> dict[str, Any]:
    attention: dict[str, Any] = {
        name: _dense_parameters(hidden, hidden) for name in ("query", "key", "value", "output")
    }
    return {
        "attention": {**attention, "norm": _norm_parameters(hidden)},
        "intermediate": _dense_parameters(hidden, feed_forward),
        "output": {**_dense_parameters(feed_forward, hidden), "norm": _norm_parameters(hidden)},
    }


def _dense_parameters(inputs: int, outputs: int) -> dict[str, Any]:
    return {"kernel": _array(inputs, outputs), "bias": _array(outputs)}


def _norm_parameters(size: int) -> dict[str, Any]:
    return {"scale": _array(size), "bias": _array(size)}


def _array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)
