"""Sizes of a network's parts, and of what it is run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tokens:
    """Tokens that one iteration computes."""

    batch: int
    """Sequences."""
    new: int
    """New tokens of each."""
    cache: int = 0
    """Earlier tokens of each, whose keys and values are there."""


@dataclass(frozen=True)
class ExpertSizes:
    """Experts of a block."""

    count: int
    chosen: int
    """Experts that a token meets."""
    inner: int
    """Width of one."""
    shared: int
    """Width of the expert of every token; 0: there is none."""
    layers: frozenset[int]
    """Blocks that have experts."""


@dataclass(frozen=True)
class LatentSizes:
    """Channels of attention to latent keys and values."""

    query_rank: int
    """Channels of the latent queries; 0: queries have none."""
    rank: int
    """Channels of the latent keys and values, which all heads share."""
    plain: int
    """Channels of a head's queries and keys that are not rotated by position."""
    rotated: int
    """Channels that are, of keys shared by all heads."""
    value: int
    """Channels of a head's values."""


@dataclass(frozen=True)
class BlockSizes:
    """One block's sizes."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    """Width of the MLP."""
    activation: str
    gated: bool
    biases: frozenset[str]
    """Products that add one: ``q``, ``k``, ``v``, ``out``, ``mlp``, ``head``."""
    rotary: int = 0
    """Channels of a head that are rotated by position."""
    windows: Mapping[int, int] = field(default_factory=dict)
    """Tokens that a block attends to at most, by its number."""
    experts: ExpertSizes | None = None
    latent: LatentSizes | None = None
