"""FLOP of the operators of training (``ai.onnx.preview.training``): updates of an optimiser.

Source: the documentation of the operators. Operands are a rate and a count, then parameters,
gradients and states, each a list of the same tensors.
"""

from __future__ import annotations

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.call import Call, Formula, cost_rules

TRAINING_DOMAIN = "ai.onnx.preview.training"
_SETTINGS = 2
"""Operands before the parameters: rate and count."""


def update(count: int, lists: int) -> Formula:
    """FLOP of an update: ``count`` an element, 2 for a penalty on the parameter in the gradient,
    and 1 for one on the result.

    Args:
        count: of an element, without penalties.
        lists: parameters, gradients, and the states that the optimiser keeps.
    """

    def flops(call: Call) -> float:
        penalty = 2 * bool(call.get("norm_coefficient", 0.0))
        after = bool(call.get("norm_coefficient_post", 0.0))
        given = call.inputs[_SETTINGS:]
        parameters = given[: len(given) // lists]
        elements = sum(t.size for t in parameters if t is not None)
        return float((count + penalty + after) * elements)

    return flops


TRAINING_RULES = cost_rules(
    f"{TRAINING_DOMAIN}.",
    {
        OpKind.ELEMENTWISE: {
            "Adagrad": update(6, 3),  # square, sum; epsilon; rate, quotient, difference
            "Adam": update(11, 4),  # moments 3 + 4; epsilon; rate, quotient, difference
            # Velocity 3; of Nesterov's 2 more; rate, difference.
            "Momentum": lambda call: update(5 + 2 * (call.get("mode", "") == "nesterov"), 3)(call),
        }
    },
)
"""The rule of each update."""
REFUSED = {
    f"{TRAINING_DOMAIN}.Gradient": "Gradient stands for a backward pass, which the file does not "
    "hold: write the backward pass out when you export the model",
    f"{TRAINING_DOMAIN}.GraphCall": "GraphCall runs a graph that is no part of the model",
}
"""Operators that have no price, and why."""
