"""Operations of IREE in a module of StableHLO.

Tensors go to another device by ``flow.tensor.transfer``; an operator runs where its operands are
(IREE's affinity analysis). Device ``i`` of the plan is ``@device_i``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# jax exports no public way to MLIR's operations.
from jaxlib.mlir import ir

EVERYWHERE = -1
"""Device of constants, which each reader has made for itself."""
SCOPE = "go_rl_node_"
"""Begins the location of an operator; its node's name follows."""


def all_operations(operation: Any) -> Iterator[Any]:
    """Yield an operation and all inside it."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from all_operations(inner.operation)


def transfer(value: Any, device: int) -> Any:
    """Return a value on a device, at the place where operations are inserted.

    Whole numbers without a sign go as numbers without a known one, since IREE's conversion of
    StableHLO leaves transfers of others.
    """
    kind = value.type
    element = kind.element_type
    unsigned = isinstance(element, ir.IntegerType) and element.is_unsigned
    if unsigned:
        plain = ir.RankedTensorType.get(kind.shape, ir.IntegerType.get_signless(element.width))
        value = _made("stablehlo.bitcast_convert", value, plain)
    target = ir.Attribute.parse(f"#hal.device.promise<@device_{device}>")
    sent = _made("flow.tensor.transfer", value, value.type, {"target": target})
    return _made("stablehlo.bitcast_convert", sent, kind) if unsigned else sent


def _made(name: str, operand: Any, kind: Any, attributes: dict[str, Any] | None = None) -> Any:
    made = ir.Operation.create(
        name, results=[kind], operands=[operand], attributes=attributes or {}
    )
    return made.results[0]


def locate(operation: Any, node: str | None) -> None:
    """Set the location of an operation to a node, or to none."""
    operation.location = ir.Location.unknown() if node is None else ir.Location.name(SCOPE + node)


def module_text(module: Any) -> str:
    """Return the text of a module with locations, without JAX's shardings, all of one device, which
    IREE does not know."""
    for operation in [
        each for each in all_operations(module.operation) if each.name.startswith("sdy.")
    ]:
        for result, operand in zip(operation.results, operation.operands, strict=True):
            result.replace_all_uses_with(operand)
        operation.erase()
    for operation in all_operations(module.operation):
        for name in [str(each) for each in operation.attributes if str(each).startswith("sdy.")]:
            del operation.attributes[name]
    return module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
