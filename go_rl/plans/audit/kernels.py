"""`OperatorRuns`: the kernels that ran for each operator of an ONNX model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from go_rl.plans.audit.operators import Fates, operator_fates
from go_rl.plans.audit.profile import Kernel


@dataclass(frozen=True)
class OperatorRuns:
    """A model's operators, by their numbers, in a session of onnxruntime that ran."""

    fates: Fates
    ran: Mapping[int, tuple[Kernel, ...]]
    """Kernels of the optimised model that ran, by their numbers; several where a name is not
    unique."""
    added: tuple[str, ...]
    """Names of kernels that compute no operator, such as changes of layout."""

    def of(self, operator: int) -> list[Kernel]:
        """Return the kernels that ran for an operator."""
        places = self.fates.kernels.get(operator, ())
        return [kernel for place in places for kernel in self.ran.get(place, ())]

    def shares(self, operator: int) -> bool:
        """Return whether the kernels of an operator compute others, too."""
        places = self.fates.kernels.get(operator, ())
        return any(len(self.fates.joined[place]) > 1 for place in places)


def operator_runs(
    model: onnx.GraphProto, optimised: onnx.GraphProto, profile: Sequence[Kernel]
) -> OperatorRuns:
    """Return the kernels that ran for each operator.

    Args:
        model: as it was loaded.
        optimised: as it ran; the model itself where that is not known, so that only operators with
            kernels of their own are found.
        profile: see `read_profile`.
    """
    fates = operator_fates(model, optimised)
    added = [node.name or node.op_type for place, node in enumerate(optimised.node)
             if place not in fates.joined]  # fmt: skip
    return OperatorRuns(fates, _ran(optimised.node, profile), tuple(added))


def _ran(
    nodes: Sequence[onnx.NodeProto], profile: Sequence[Kernel]
) -> dict[int, tuple[Kernel, ...]]:
    """Kernels that ran for each node of a main graph. onnxruntime calls a node without a name by
    its type and a number that rises with its place."""
    named: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    numbered: dict[str, list[tuple[int, Kernel]]] = defaultdict(list)
    for kernel in profile:
        named[kernel.name, kernel.op_type].append(kernel)
        word, _, number = kernel.name.rpartition("_")
        if word == kernel.op_type and number.isdecimal():
            numbered[word].append((int(number), kernel))
    unnamed = {word: iter(sorted(found, key=lambda pair: pair[0]))
               for word, found in numbered.items()}  # fmt: skip
    found: dict[int, tuple[Kernel, ...]] = {}
    for place, node in enumerate(nodes):
        if node.name:
            kernels = named[node.name, node.op_type]
        else:
            following = next(unnamed.get(node.op_type, iter(())), None)
            kernels = [] if following is None else [following[1]]
        if kernels:
            found[place] = tuple(kernels)
    return found
