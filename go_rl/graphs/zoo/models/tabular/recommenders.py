"""Recommendation networks: many embedding tables, then small dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


def dense_stack(x: Any, widths: Sequence[int], last_linear: bool = False) -> Any:
    """Apply dense layers with ReLU; call inside a compact module."""
    for layer, width in enumerate(widths):
        x = nn.Dense(width)(x)
        if not (last_linear and layer == len(widths) - 1):
            x = nn.relu(x)
    return x


class DLRM(nn.Module):
    """Embedding bags, pairwise interactions and two MLPs (Naumov et al. 2019).

    Input: dense features [batch, features] and row numbers [batch, tables, lookups].
    """

    tables: int = 8
    rows: int = 10000
    width: int = 64
    bottom: Sequence[int] = (512, 256)
    """Hidden widths below the interaction; its output has the embeddings' width."""
    top: Sequence[int] = (512, 256)

    @nn.compact
    def __call__(self, dense: Any, sparse: Any) -> Any:
        bottom = dense_stack(dense, (*self.bottom, self.width))
        bags = [nn.Embed(self.rows, self.width)(sparse[:, t]).sum(1) for t in range(self.tables)]
        vectors = jnp.stack([bottom, *bags], axis=1)
        products = jnp.einsum("bid,bjd->bij", vectors, vectors)
        rows, columns = jnp.tril_indices(self.tables + 1, -1)
        features = jnp.concatenate([bottom, products[:, rows, columns]], axis=-1)
        return nn.sigmoid(dense_stack(features, (*self.top, 1), last_linear=True))


class MultiTower(nn.Module):
    """Towers over their own tables, gated experts between them and a head for each objective.

    A ranking network as in Ma et al. 2018 (multi-gate mixture of experts) above the towers of Yi et
    al. 2019: tower i embeds its own tables and is an MLP of its own depth and width; every expert
    reads all towers; each head weighs the experts by a gate that reads its tower.
    Input: dense features [batch, features] and row numbers [batch, towers, tables, lookups].
    """

    towers: int = 8
    tables: int = 6
    rows: int = 20000
    width: int = 32
    experts: int = 6
    heads: int = 4

    @nn.compact
    def __call__(self, dense: Any, sparse: Any) -> Any:
        tops = []
        for i in range(self.towers):
            bags = [
                nn.Embed(self.rows, self.width)(sparse[:, i, t]).sum(1) for t in range(self.tables)
            ]
            hidden = (256 * (1 + i % 4),) * (1 + i % 3)
            tops.append(dense_stack(jnp.concatenate([dense, *bags], axis=-1), (*hidden, 128)))
        joined = jnp.concatenate(tops, axis=-1)
        experts = [dense_stack(joined, (512, 256)) for _ in range(self.experts)]
        return [self._head(tops[i % self.towers], experts) for i in range(self.heads)]

    def _head(self, tower: Any, experts: list[Any]) -> Any:
        gates = jnp.split(nn.softmax(nn.Dense(len(experts))(tower)), len(experts), axis=-1)
        mixed = gates[0] * experts[0]
        for gate, expert in zip(gates[1:], experts[1:], strict=True):
            mixed = mixed + gate * expert
        return nn.sigmoid(dense_stack(mixed, (128, 1), last_linear=True))


class NeuMF(nn.Module):
    """Neural collaborative filtering: matrix factorisation beside an MLP (He et al. 2017).

    Input: a user [batch] and candidate items [batch, candidates]; output: the ten best candidates
    and their scores, as in the paper's evaluation. Users and items are MovieLens-1M's.
    """

    users: int = 6040
    items: int = 3706
    factors: int = 64
    hidden: Sequence[int] = (512, 256, 128, 64, 32, 16)

    @nn.compact
    def __call__(self, user: Any, items: Any) -> Any:
        users = jnp.broadcast_to(user[:, None], items.shape)
        product = self._rows(self.users, self.factors, users)
        product = product * self._rows(self.items, self.factors, items)
        half = self.hidden[0] // 2
        pair = [self._rows(self.users, half, users), self._rows(self.items, half, items)]
        deep = dense_stack(jnp.concatenate(pair, axis=-1), self.hidden)
        scores = nn.Dense(1)(jnp.concatenate([product, deep], axis=-1))[..., 0]
        return jax.lax.top_k(nn.sigmoid(scores), 10)

    def _rows(self, count: int, width: int, chosen: Any) -> Any:
        return nn.Embed(count, width)(chosen)


class WideAndDeep(nn.Module):
    """A linear model over all features beside an MLP over embeddings (Cheng et al. 2016).

    Input: dense features [batch, features] and one row number for each table [batch, tables].
    """

    tables: int = 26
    rows: int = 20000
    width: int = 32
    hidden: Sequence[int] = (1024, 512, 256)

    @nn.compact
    def __call__(self, dense: Any, sparse: Any) -> Any:
        columns = range(self.tables)
        deep = [nn.Embed(self.rows, self.width)(sparse[:, t]) for t in columns]
        hidden = dense_stack(jnp.concatenate([dense, *deep], axis=-1), self.hidden)
        wide = nn.Dense(1)(dense)
        for t in columns:
            wide = wide + nn.Embed(self.rows, 1)(sparse[:, t])
        return nn.sigmoid(wide + nn.Dense(1)(hidden))


class DeepCross(nn.Module):
    """Cross layers x₀ ⊙ (W x + b) + x, then an MLP (Wang et al. 2021, DCN-V2, stacked).

    Input as for `WideAndDeep`.
    """

    tables: int = 26
    rows: int = 20000
    width: int = 39
    crosses: int = 3
    hidden: Sequence[int] = (768, 768)

    @nn.compact
    def __call__(self, dense: Any, sparse: Any) -> Any:
        rows = [nn.Embed(self.rows, self.width)(sparse[:, t]) for t in range(self.tables)]
        first = x = jnp.concatenate([dense, *rows], axis=-1)
        for _ in range(self.crosses):
            x = x + first * nn.Dense(x.shape[-1])(x)
        return nn.sigmoid(dense_stack(x, (*self.hidden, 1), last_linear=True))


class Autoencoder(nn.Module):
    """Deep autoencoder over a user's ratings (Kuchaiev and Ginsburg 2017): [batch, items]."""

    widths: Sequence[int] = (512, 512, 1024, 512, 512)

    @nn.compact
    def __call__(self, ratings: Any) -> Any:
        x = ratings
        for width in (*self.widths, ratings.shape[-1]):
            x = nn.selu(nn.Dense(width)(x))
        return x
