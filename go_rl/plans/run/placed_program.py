"""`PlacedProgram`: a traced JAX function cut into segments, each compiled for its own device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

from go_rl.graphs.readers.jax.stages import JaxProgram, JaxStage
from go_rl.plans.run.segments import Segments

Held = tuple[str, jax.Device]
"""A tensor by name, on a device."""
Arrays = dict[Held, Any]


@dataclass(frozen=True)
class Arguments:
    """Inputs of an iteration."""

    given: Mapping[str, Any]
    """The arrays of the arguments by name, as the user gave them."""
    placed: Arrays
    """Copies on every device that reads them."""


@dataclass(frozen=True)
class _Call:
    """One segment of an iteration."""

    function: Callable[..., Any]
    """Compiled for its device when first called."""
    weights: tuple[Held, ...]
    inputs: tuple[Held, ...]
    outputs: tuple[Held, ...]
    sent: tuple[tuple[int, jax.Device], ...]
    """Outputs by number, and the other devices that need them."""
    last: tuple[Held, ...]
    """Tensors without a later reader."""


class PlacedProgram:
    """A function whose parts run on the devices of a plan; see `go_rl.plans.run.place_function`.

    Calls are like those of the function itself, with other numbers in arrays of the same shapes.
    """

    def __init__(
        self, program: JaxProgram, segments: Segments, devices: Mapping[int, jax.Device]
    ) -> None:
        """``devices``: the JAX device of each device of the plan in use."""
        self._program = program
        stages = program.stages(segments.segment, segments.copies)
        stages = sorted(stages, key=lambda stage: stage.device)
        where = [devices[int(segments.device[stage.device])] for stage in stages]
        self._calls = _calls(stages, where)
        self._returned = frozenset(program.returned)

    @property
    def num_segments(self) -> int:
        """Programs that an iteration runs."""
        return len(self._calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function's result; each result lies on the device that made it."""
        return self.step(self.place(*args, **kwargs))

    def place(self, *args: Any, **kwargs: Any) -> Arguments:
        """Copy the arguments to the devices that read them.

        Raises:
            PlanError: another number of arrays than the function was traced with.
        """
        given = self._program.inputs(args, kwargs)
        wanted = dict.fromkeys(
            held for call in self._calls for held in (*call.weights, *call.inputs)
            if held[0] in given
        )  # fmt: skip
        arrays = jax.device_put([given[name] for name, _ in wanted], [d for _, d in wanted])
        return Arguments(given, dict(zip(wanted, arrays, strict=True)))

    def step(self, arguments: Arguments) -> Any:
        """Start an iteration from placed arguments; as everywhere in JAX, it returns before the
        end."""
        held, made = dict(arguments.placed), dict(arguments.given)
        for call in self._calls:
            weights = tuple(held[key] for key in call.weights)
            outputs = call.function(weights, tuple(held[key] for key in call.inputs))
            held.update(zip(call.outputs, outputs, strict=True))
            made.update((key[0], held[key]) for key in call.outputs if key[0] in self._returned)
            for i, device in call.sent:
                held[call.outputs[i][0], device] = jax.device_put(outputs[i], device)
            for key in call.last:
                held.pop(key, None)
        return self._program.result(made)


def _calls(stages: Sequence[JaxStage], where: Sequence[jax.Device]) -> tuple[_Call, ...]:
    readers: dict[str, dict[jax.Device, None]] = {}
    final: dict[Held, int] = {}
    for i, (stage, device) in enumerate(zip(stages, where, strict=True)):
        final.update(((name, device), i) for name in (*stage.inputs, *stage.outputs))
        for name in stage.inputs:
            readers.setdefault(name, {})[device] = None
    last: dict[int, list[Held]] = {}
    for held, i in final.items():
        last.setdefault(i, []).append(held)
    return tuple(
        _Call(
            function=jax.jit(stage.function, out_shardings=SingleDeviceSharding(device)),
            weights=tuple((name, device) for name in stage.weights),
            inputs=tuple((name, device) for name in stage.inputs),
            outputs=tuple((name, device) for name in stage.outputs),
            sent=tuple(
                (k, other)
                for k, name in enumerate(stage.outputs)
                for other in readers.get(name, ())
                if other != device
            ),
            last=tuple(last.get(i, ())),
        )
        for i, (stage, device) in enumerate(zip(stages, where, strict=True))
    )
