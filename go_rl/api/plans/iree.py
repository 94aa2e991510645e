"""`execute_iree`: a JAX function on local devices of IREE, by a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import Plan

if TYPE_CHECKING:
    import numpy as np

    from go_rl.plans.audit.streams import StreamAudit


@dataclass(frozen=True, eq=False)
class IreeExecuted:
    """A function that IREE ran."""

    outputs: Any
    """Results of the function, as NumPy arrays."""
    module: str
    """StableHLO that was compiled."""
    audit: StreamAudit
    """Device of each kernel, held against the plan."""


def execute_iree(
    plan: Plan | str | Path,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Collection[int] | None = None,
    timeout: float = 600.0,
) -> IreeExecuted:
    """Run a JAX function once on devices of IREE that share this machine's cores, one for each
    device of the plan, and hold IREE's streams against the plan.

    Args:
        plan: made for ``trace(function, *args, **kwargs)``; or the path of its plan.json.
        function: what was traced.
        args, kwargs: its arguments, with real arrays.
        weights: as for `trace`.
        timeout: seconds that compiling, and running, may take.

    Raises:
        PlanError: the plan is malformed, a failure, rejected by the checker, or belongs to another
            graph.
        SplitError: the function has values that cannot go to another device.
        MissingDependencyError: IREE is not installed.
        ExecutionError: IREE refuses the function, fails, or takes too long.
    """
    import jax

    from go_rl.graphs.readers.jax.stages import jax_program
    from go_rl.plans.audit.streams import audit_streams
    from go_rl.plans.legal import require_legal
    from go_rl.plans.run.iree_run import run_on_iree
    from go_rl.plans.sinks.iree import placed_module
    from go_rl.plans.sinks.placed import placed

    plan, named = Plan.of(plan), kwargs or {}
    program = jax_program(function, args, named, weights=weights)
    require_legal(plan, program.graph)
    what = placed("iree", plan, program.graph)
    module = placed_module(what, program, args, named)
    shape = jax.tree.structure(jax.eval_shape(function, *args, **named))
    given = [*args, *(named[key] for key in sorted(named))]
    arrays = [_numbers(leaf) for leaf in jax.tree.leaves(given)]
    devices = sorted(set(what.device[what.fixed].tolist()))
    ran = run_on_iree(module, arrays, devices, shape.num_leaves, timeout)
    outputs = jax.tree.unflatten(shape, ran.outputs)
    return IreeExecuted(outputs, module, audit_streams(what, ran.streams))


def _numbers(leaf: Any) -> np.ndarray:
    """The numbers of an array, or of a key of random numbers."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)
