"""`placed_module`: StableHLO of a JAX function whose operators are on the devices of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib.mlir import ir

from go_rl.core import OpKind
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.plans.sinks.iree.transfers import (
    EVERYWHERE,
    SCOPE,
    all_operations,
    locate,
    module_text,
    transfer,
)
from go_rl.plans.sinks.placed import Placed

MARK = "go_rl_transfer"
"""Call that stands for a transfer until the text is made."""


def placed_module(
    plan: Placed, program: JaxProgram, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Return the module of a traced function, with transfers; arguments are as for `jax_program`.

    Raises:
        SplitError: the function is not the plan's, or has values that cannot go to another device.
    """
    if program.graph.digest != plan.graph.digest:
        raise plan.error(
            f"is of another function: the plan's graph {plan.graph.name!r} has "
            f"{plan.graph.num_nodes} nodes, the function's {program.graph.num_nodes}; name it with "
            "the arguments, sizes and weights of the plan"
        )
    try:
        lowered = jax.jit(_by_nodes(plan, program), keep_unused=True).lower(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise plan.error(
            "cannot carry a value of this function to another device "
            f"({str(error).splitlines()[0]})"
        ) from error
    return _with_transfers(lowered.compiler_ir("stablehlo"), list(map(str, plan.graph.names)))


def _by_nodes(plan: Placed, program: JaxProgram) -> Callable[..., Any]:
    """The function, node by node, each with its operands on its device."""
    device = np.where(plan.graph.kind == int(OpKind.CONSTANT), EVERYWHERE, plan.device)
    nodes = np.flatnonzero(plan.graph.kind != int(OpKind.INPUT)).tolist()
    parts = [(int(device[node]), node, program.part([node])) for node in nodes]

    def whole(*args: Any, **kwargs: Any) -> Any:
        values = program.inputs(args, kwargs)
        home: dict[str, int] = {}
        there: dict[tuple[str, int], Any] = {}

        def on(name: str, device: int) -> Any:
            if EVERYWHERE in (device, home.get(name)) or home.get(name) == device:
                return values[name]
            if (name, device) not in there:
                there[name, device] = _sent(values[name], device)
            return there[name, device]

        for device, node, part in parts:
            weights = tuple(on(name, device) for name in part.weights)
            operands = tuple(on(name, device) for name in part.inputs)
            with jax.named_scope(f"{SCOPE}{node}"):
                made = part.function(weights, operands)
            values.update(zip(part.outputs, made, strict=True))
            home.update(dict.fromkeys(part.outputs, device))
        return program.result(values)

    return whole


def _sent(array: Any, device: int) -> Any:
    """An array on its way to a device; numbers without a sign go as if they had one, since IREE's
    conversion of StableHLO leaves transfers of others."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        numbers = _sent(jax.random.key_data(array), device)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(array))
    if jnp.issubdtype(array.dtype, np.unsignedinteger):
        signed = np.dtype(f"i{array.dtype.itemsize}")
        sent = _sent(jax.lax.bitcast_convert_type(array, signed), device)
        return jax.lax.bitcast_convert_type(sent, array.dtype)
    kind = jax.ShapeDtypeStruct(array.shape, array.dtype)
    return jax.ffi.ffi_call(MARK, kind)(array, device=np.int64(device))


def _with_transfers(module: Any, names: Sequence[str]) -> str:
    """The text of a module, its marks replaced by transfers, its operators located by nodes."""
    context = module.context
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown(context):
        for call in list(filter(_is_mark, all_operations(module.operation))):
            config: Any = ir.DictAttr(call.attributes["mhlo.backend_config"])
            device = ir.IntegerAttr(config["device"]).value
            with ir.InsertionPoint(call):
                call.results[0].replace_all_uses_with(transfer(call.operands[0], device))
            call.erase()
        for operation in all_operations(module.operation):
            node = re.search(rf"{SCOPE}(\d+)", str(operation.location))
            locate(operation, None if node is None else names[int(node[1])])
        return module_text(module)


def _is_mark(operation: Any) -> bool:
    """Whether an operation stands for a transfer."""
    called = "stablehlo.custom_call"
    return operation.name == called and MARK in str(operation.attributes["call_target_name"])
