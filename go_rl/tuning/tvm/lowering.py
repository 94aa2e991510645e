"""`LoweredNetwork`: a network as functions of TIR, each tuned or left untuned with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from go_rl.tuning.tvm.codegen import CodeTarget
from go_rl.tuning.tvm.models.model import ModelInput, TunableNetwork
from go_rl.tuning.tvm.network import imported, lowered_network
from go_rl.tuning.tvm.operators import (
    NetworkFunction,
    in_order,
    is_tuned,
    network_functions,
    weight_bytes,
)
from go_rl.tuning.tvm.space import TvmSpace


@dataclass(frozen=True, eq=False)
class LoweredNetwork:
    """Network as functions of TIR."""

    name: str
    inputs: tuple[ModelInput, ...]
    code: CodeTarget
    """Target of code generation."""
    module: Any
    """Module of Relax, whose ``main`` calls the functions."""
    functions: tuple[NetworkFunction, ...] = field(repr=False)
    """All functions of the network; the tuned ones come first."""
    weight_bytes: int = 0
    """Bytes of all constants."""
    spaces: Mapping[int, TvmSpace] = field(default_factory=dict, repr=False)
    """Candidates of the tuned functions, by number."""

    @property
    def tuned(self) -> tuple[NetworkFunction, ...]:
        """Functions that are tuned: the arms, in order."""
        return tuple(function for function in self.functions if is_tuned(function))


def lower(network: TunableNetwork, code: CodeTarget) -> LoweredNetwork:
    """Return a network as functions of TIR.

    Args:
        network: with its weights.
        code: what it is compiled for.

    Raises:
        MissingDependencyError: TVM is not installed.
        TuningError: TVM cannot import or compile the network.
    """
    module = lowered_network(imported(network), code)
    found = [_with_space(each, code) for each in network_functions(module)]
    spaces = {each.names: space for each, space in found if space is not None}
    functions = in_order(each for each, _ in found)
    return LoweredNetwork(
        network.name, network.inputs, code, module, functions, weight_bytes(module),
        {i: spaces[each.names] for i, each in enumerate(functions) if each.names in spaces},
    )  # fmt: skip


def _with_space(
    function: NetworkFunction, code: CodeTarget
) -> tuple[NetworkFunction, TvmSpace | None]:
    """A function and, where it is tuned, its candidates; one that has none is not tuned."""
    if not is_tuned(function):
        return function, None
    try:
        return function, TvmSpace(function.module, code)
    except Exception as error:  # TVM raises what it likes
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        return replace(function, untuned=f"TVM finds no schedules for it: {said}"), None
