"""`render_iree`: the module of a JAX function by name, or of a file of StableHLO."""

from __future__ import annotations

from pathlib import Path

from go_rl.graphs.readers.jax.stages import jax_program
from go_rl.graphs.readers.jax.target import resolved_target
from go_rl.graphs.readers.recognise import names_function
from go_rl.plans.sinks.iree.jax_function import placed_module
from go_rl.plans.sinks.iree.stablehlo_file import placed_file
from go_rl.plans.sinks.placed import Placed


def render_iree(plan: Placed, model: str | Path, path: str | Path) -> bytes:
    """Return the module of ``module:function``, or of a file of StableHLO.

    Args:
        plan: what is written.
        model: the function or file.
        path: where the module goes.

    Raises:
        SplitError: the model is not the plan's, or cannot be cut so.
        ReadError: the model cannot be read.
    """
    dims = dict(plan.graph.meta.get("dims", {}))
    if not names_function(model):
        return placed_file(plan, Path(model), dims).encode()
    with resolved_target(str(model), dims) as (name, (function, args, weights)):
        program = jax_program(function, args, name=name, weights=weights)
        return placed_module(plan, program, args, {}).encode()
