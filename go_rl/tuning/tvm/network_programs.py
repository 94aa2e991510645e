"""`network_programs`: the functions of a lowered network as loop nests, and how they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from go_rl.core.hardware.processor import own_target
from go_rl.core.printable import first_line
from go_rl.costs.programs.machine_code.tvm_code import code_numbers
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import LoopNest, NestError
from go_rl.costs.programs.nests.tvm_arithmetic import kind_of
from go_rl.costs.programs.nests.tvm_lowering import nest_from_tvm
from go_rl.costs.programs.network_latency import DEFAULT, TUNED, NetworkProgram, NetworkPrograms
from go_rl.costs.programs.workloads.drawn_programs import codegen_target
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.tvm.lowering import LoweredNetwork
from go_rl.tuning.tvm.operators import CALL, NetworkFunction
from go_rl.tuning.tvm.space import ILLEGAL, scheduled


def network_programs(
    network: LoweredNetwork, candidates: Mapping[str, Any], compiled: bool = False
) -> NetworkPrograms:
    """Return the programs of a network, and its calls in order.

    Args:
        network: lowered by TVM.
        candidates: documents of TVM's traces by the workload of a function, as ``candidates.json``
            of ``go-rl tune programs`` has them; other functions have TVM's default schedule.
        compiled: whether each function is compiled, for predictors that read machine code.
    """
    level = network.code.level if compiled else ""
    owner = {name: i for i, each in enumerate(network.functions) for name in each.names}
    calls = list(_calls(network.module))
    return NetworkPrograms(
        programs=tuple(
            _program(each, candidates.get(each.operator.workload), level)
            for each in network.functions
        ),
        called=np.array([owner[name] for name, _ in calls], np.int64),
        before=tuple(waits for _, waits in calls),
        target=ProgramTarget(own_target(), network.code.level),
    )


def _program(function: NetworkFunction, document: Any, level: str) -> NetworkProgram:
    """A function under a candidate, or under TVM's default schedule where there is none; compiled
    for a level of x86-64 where there is one."""
    name, schedule = function.title, DEFAULT if document is None else TUNED
    try:
        module = scheduled(function.module, document).mod
    except ILLEGAL as error:
        why = f"its schedule is not legal here: {first_line(error)}"
        return NetworkProgram(name, schedule, None, why)
    with suppress(NestError):
        nest = nest_from_tvm(module)
        return NetworkProgram(name, schedule, nest, machine=_code(module, nest, level))
    try:
        nest = nest_from_tvm(module, other_types=True)
    except NestError as error:
        return NetworkProgram(name, schedule, None, first_line(error))
    return NetworkProgram(name, schedule, nest, machine=_code(module, nest, level), exact=False)


def _code(module: Any, nest: LoopNest, level: str) -> tuple[float, ...]:
    """Numbers of the machine code of a function; none where no level is given."""
    if not level:
        return ()
    return code_numbers(import_tvm().compile(module, target=codegen_target(level)), nest)


def _calls(module: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name of the function of each call of ``main``, and the calls whose results it reads."""
    relax = import_tvm().relax
    made: dict[Any, frozenset[int]] = {}
    """Calls from which a variable of Relax comes."""

    def sources(value: Any) -> frozenset[int]:
        if kind_of(value) in ("relax.expr.Var", "relax.expr.DataflowVar") or value in made:
            return made.get(value, frozenset())
        fields = getattr(value, "fields", None)
        if fields is None and hasattr(value, "tuple_value"):
            fields = [value.tuple_value]
        return frozenset().union(*map(sources, fields or ()))

    count = 0
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call):
                waits = frozenset().union(*map(sources, value.args[1:]))
                if getattr(value.op, "name", "") == CALL:
                    yield str(value.args[0].name_hint), tuple(sorted(waits))
                    waits, count = frozenset({count}), count + 1
                else:
                    waits |= frozenset().union(*map(sources, value.args))
                made[binding.var] = waits
            else:
                made[binding.var] = sources(value)
