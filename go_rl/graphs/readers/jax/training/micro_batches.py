"""Micro-batches: a training iteration whose batch is split, with accumulated gradients.

Huang et al. 2019, "GPipe: efficient training of giant neural networks using pipeline parallelism",
section 2.2: the mini-batch is divided into equal micro-batches, each goes through the forward and
backward pass with the same weights, and one update applies the mean of their gradients. The loop is
written out, so that a plan places and orders the passes of each micro-batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.core.errors import ReadError
from go_rl.core.graph.micro_batch import micro_batch_scope
from go_rl.graphs.readers.model_options import check_size
from go_rl.graphs.readers.weight_returns import part_of_batch

NO_BATCH = "Arguments that have no batch are named as weights (--weight-args)"
"""Said to users whose arguments differ in their first axis."""


@dataclass(frozen=True, eq=False)  # jax.jit needs a hash
class TrainingIteration:
    """One iteration of training, whose gradients are the mean over equal parts of a batch."""

    gradient: Callable[..., Any]
    """Returns what is averaged, from all arguments: loss and gradients, as `jax.value_and_grad`
    does, and what else the loss returns."""
    finish: Callable[..., Any] | None = None
    """Returns the results of the iteration, such as updated weights, from what ``gradient``
    returned and all arguments; None: what ``gradient`` returned."""
    axes: Mapping[int, int] | None = None
    """Axis of the batch by the position of each argument that is split; None: the first axis of all
    arguments but the first."""
    micro_batches: int = 1
    """Parts of the batch."""

    def __post_init__(self) -> None:
        check_size(self.micro_batches, "micro_batches")

    def __call__(self, *args: Any) -> Any:
        found = self._averaged(args)
        return found if self.finish is None else self.finish(found, *args)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the gradient, whose arguments name inputs of graphs."""
        return inspect.signature(self.gradient)

    def _averaged(self, args: tuple[Any, ...]) -> Any:
        count = self.micro_batches
        if count == 1:
            return self.gradient(*args)
        axes = dict.fromkeys(range(1, len(args)), 0) if self.axes is None else self.axes
        size = part_size(args, axes, count)
        total: Any = None
        for part in range(count):
            with jax.named_scope(micro_batch_scope(part)):
                found = self.gradient(*_part(args, axes, part * size, size))
                total = found if total is None else jax.tree.map(_sum, total, found)
        return jax.tree.map(lambda x: x / count if _averages(x) else x, total)


def part_size(args: tuple[Any, ...], axes: Mapping[int, int], count: int) -> int:
    """Return the size of a micro-batch.

    Args:
        args: of the training iteration.
        axes: axis of the batch by position of the arguments that are split; scalars in them, and
            random keys, are not.
        count: micro-batches.

    Raises:
        ReadError: no argument has a batch, two have different ones, or it does not divide.
    """
    extents: list[tuple[str, int]] = []
    for position, axis in axes.items():
        for path, leaf in jax.tree_util.tree_flatten_with_path(args[position])[0]:
            if jnp.ndim(leaf) == 0:
                continue
            what = f"argument {position}{jax.tree_util.keystr(path)} of shape {jnp.shape(leaf)}"
            if axis >= jnp.ndim(leaf):
                raise ReadError(f"{what} has no axis {axis}, which would be split")
            extents.append((f"{what}, axis {axis}", jnp.shape(leaf)[axis]))
    return part_of_batch(extents, count, NO_BATCH)


def _part(args: tuple[Any, ...], axes: Mapping[int, int], start: int, size: int) -> list[Any]:
    def cut(leaf: Any, axis: int) -> Any:
        whole = jnp.ndim(leaf) == 0
        return leaf if whole else jax.lax.slice_in_dim(leaf, start, start + size, axis=axis)

    return [
        jax.tree.map(lambda leaf, axis=axes[i]: cut(leaf, axis), arg) if i in axes else arg
        for i, arg in enumerate(args)
    ]


def _averages(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def _sum(total: Any, found: Any) -> Any:
    """The sum of numbers that are averaged; of others, such as counters, the last."""
    return total + found if _averages(found) else found
