"""Updates of parameters by an optimiser, behind the gradients of a joint program."""

from __future__ import annotations

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.graph_builder import TIE_BYTES, Node
from go_rl.graphs.readers.torch.program.schema import Ref, TorchProgram
from go_rl.graphs.readers.torch.scope import ProgramScope, TorchWalk
from go_rl.graphs.readers.torch.value import TorchValue

FLOPS: dict[str, float] = {"sgd": 2.0, "adam": 13.0}
"""FLOP an element: rate and difference; and of Adam two moments (7), their corrections (2), epsilon
and quotient (2)."""
STATES: dict[str, int] = {"sgd": 0, "adam": 2}
"""Arrays as large as the parameter that the optimiser keeps."""


def add_updates(
    walk: TorchWalk, scope: ProgramScope, program: TorchProgram, optimiser: str
) -> None:
    """Add one node for each parameter that has a gradient: it changes the parameter in place. A
    parameter of several names gets the sum of their gradients.

    Raises:
        ReadError: the program has no gradients.
    """
    parameters = {s.target: s.value for s in program.inputs if s.kind == "parameter"}
    gradients: dict[str, list[tuple[str, TorchValue]]] = {}
    for spec in program.outputs:
        if spec.kind == "gradient_to_parameter" and isinstance(spec.value, Ref):
            if spec.target not in parameters:
                raise ReadError(f"{walk.where}: the gradient of {spec.target!r} is of no parameter")
            array = program.stored.get(spec.target, spec.target)
            value = scope.values[spec.value.name]
            gradients.setdefault(array, []).append((spec.target, value))
    if not gradients:
        raise ReadError(
            f"{walk.where}: a program without gradients; a training iteration is read from a "
            f"module (file.py:model --training {optimiser}), or from an archive of a joint program"
        )
    for given in gradients.values():
        weight = scope.values[parameters[given[0][0]].name]
        _add_update(walk, given[0][0], weight, [value for _, value in given], optimiser)


def _add_update(
    walk: TorchWalk, target: str, weight: TorchValue, given: list[TorchValue], optimiser: str
) -> None:
    size, states = weight.tensor.nbytes, STATES[optimiser] * weight.tensor.nbytes
    module, _, parameter = target.rpartition(".")
    number = walk.builder.add_node(
        Node(
            name=f"{module}/{optimiser}.{parameter}" if module else f"{optimiser}.{parameter}",
            op_type=optimiser,
            kind=OpKind.ELEMENTWISE,
            flops=(FLOPS[optimiser] + len(given) - 1) * weight.tensor.size,
            bytes_accessed=sum(value.num_bytes for value in given) + 2.0 * (size + states),
            weight_bytes=size + states,
            weight_itemsize=weight.tensor.itemsize,
            weight_arrays={name: size for name in weight.weights if size > TIE_BYTES},
            output_itemsize=weight.tensor.itemsize,
            element_type=weight.tensor.type,
            source=f"{module} update of {parameter}".strip(),
        )
    )
    for value in given:
        if value.producer is not None:
            walk.builder.add_edge(value.producer, number, value.num_bytes, value.output)
