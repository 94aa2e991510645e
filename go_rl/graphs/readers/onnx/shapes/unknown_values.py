"""Reasons why the value of a tensor is not known, for refusals: the failure, or which input is not
given.

Nothing is guessed: a reason names the operator that could not be evaluated and what it raised, the
stored array whose data is not at hand, or the input of the model from which the value follows.
"""

from __future__ import annotations

import math

import onnx

from go_rl.core.plan import VALUE_SUFFIX
from go_rl.graphs.readers.model_options import option
from go_rl.graphs.readers.onnx.costs.operators import RULES
from go_rl.graphs.readers.onnx.scope import Scope
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS, describe
from go_rl.graphs.readers.onnx.values import static_shape


def why_shape_unknown(node: onnx.NodeProto, scope: Scope) -> tuple[str, str]:
    """Return why the size of a result of ``node`` is not known, and an option that gives it.

    Either is empty where nothing is known of it.
    """
    rule = RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
    for position, name in enumerate(node.input):
        sets_up = rule is not None and position in rule.settings
        if name and sets_up and name not in scope.constants:
            reason, option = why_unknown(name, scope)
            return f"the value of operand {position}, {name!r}, is not known: {reason}", option
    return "", ""


def why_unknown(name: str, scope: Scope) -> tuple[str, str]:
    """Return why the value of tensor ``name`` is not known, and an option that gives it or ''."""
    seen: set[str] = set()
    while True:
        seen.add(name)
        node = scope.producers.get(name)
        if name in scope.failures:
            return f"{describe(node) if node else repr(name)} {scope.failures[name]}", ""
        if node is None:
            return _of_input(name, scope)
        before = [i for i in node.input if i and i not in scope.constants and i not in seen]
        if not before:
            return f"{describe(node)} is not evaluated", ""
        name = before[0]


def _of_input(name: str, scope: Scope) -> tuple[str, str]:
    shape = static_shape(scope.types[name]) if name in scope.types else None
    reason = f"it follows from the values of input {name!r}, which are not given"
    if shape is None or math.prod(shape) != 1:
        return reason, ""
    if not shape:
        return reason, option("--input", f"{name}=<value>")
    return reason, option("--dim", f"{name}{VALUE_SUFFIX}=<value>")
