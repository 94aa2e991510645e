"""`sized_graph`: networks of the zoo whose code is traced at the batch and sequence that a user
gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.model_options import with_trips

if TYPE_CHECKING:
    from go_rl.core import OpGraph
    from go_rl.graphs.zoo.models.building import Built

DIMS = ("batch", "sequence")
SIZED_NAMES = tuple(
    f"{name}{form}"
    for name in ("bert-large", "gpt2-large", "gpt3-xl", "opt-1.3b")
    for form in ("", "-training")
)
"""Names of `go_rl.graphs.zoo.models.language.sized.SIZED`, known without JAX."""


def sized_graph(name: str, dims: Mapping[str, int], micro_batches: int = 1) -> OpGraph:
    """Return the graph of a network at some sizes.

    Args:
        name: of `SIZED_NAMES`.
        dims: ``batch``, ``sequence``, both or none.
        micro_batches: parts of the batch of a training iteration.

    Raises:
        ReadError: the network has no such dimension, its sequences are shorter, or the batch does
            not divide.
    """
    from go_rl.graphs.readers.jax.reader import trace_jax
    from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches

    function, args, weights = sized_network(name, dims)
    try:
        if micro_batches > 1:
            function = in_micro_batches(function, args, weights, micro_batches)
        kept = with_trips(dims, None, micro_batches)
        return trace_jax(function, *args, weights=weights, name=name, dims=kept)
    except ReadError as error:
        raise ReadError(f"zoo:{name}: {error}") from error


def sized_network(name: str, dims: Mapping[str, int]) -> Built:
    """Return a network at some sizes: function, abstract arguments, positions of the weights.

    Arguments and errors as for `sized_graph`.
    """
    for dim in dims:
        if dim not in DIMS:
            raise ReadError(
                f"zoo:{name}: no dimension {dim!r}{nearest(dim, DIMS)} It has {', '.join(DIMS)}"
            )
    from go_rl.graphs.zoo.models.language.sized import SIZED

    try:
        return SIZED[name].build(dims.get("batch"), dims.get("sequence"))
    except ReadError as error:
        raise ReadError(f"zoo:{name}: {error}") from error
