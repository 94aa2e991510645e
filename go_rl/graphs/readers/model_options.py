"""Options of a model besides its name, checked before anything is read."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.core.plan import VALUE_SUFFIX
from go_rl.graphs.readers.recognise import Format

Unknown = Literal["error", "bytes"]
"""Treatment of an operator whose cost is unknown: refuse it, or count its bytes only."""
Optimiser = Literal["sgd", "adam"]
"""Optimisers of a training iteration."""
Training = bool | Optimiser
"""Whether a profile is expanded into both passes; the optimiser of a PyTorch module's training
iteration."""
Inputs = Mapping[str, Sequence[int] | int]
"""Shapes of a model's inputs by name; a number is the value of an input of one element."""
TRIP_COUNT = "trip_count"
"""Names the trips of loops of unknown length, as an option and among the dimensions."""
MICRO_BATCHES = "micro_batches"
"""Names the parts of a batch, as an option and as a parameter of factories."""
_UNSPLIT = (
    "a training iteration while it is traced, and {} is traced already; name the JAX loss or the "
    "PyTorch module that it was made of (file.py:loss with --training sgd), or a training network "
    "of the zoo (zoo:NAME-training)"
)
LARGEST_SIZE = 1 << 62


@dataclass(frozen=True)
class ModelOptions:
    """Options of `load`; see there."""

    dims: Mapping[str, int] = field(default_factory=dict)
    unknown: Unknown = "error"
    training: bool = False
    inputs: Inputs = field(default_factory=dict)
    trip_count: int | None = None
    weights: Collection[int] | None = None
    optimiser: Optimiser | None = None
    """``training``, where it names one."""
    micro_batches: int = 1
    """Parts of the batch."""

    @classmethod
    def of(
        cls,
        dims: object = None,
        unknown: object = "error",
        training: object = False,
        inputs: object = None,
        trip_count: object = None,
        weights: object = None,
        micro_batches: object = None,
    ) -> ModelOptions:
        """Return the options that a user gave, each of the type that it must be.

        Raises:
            ReadError: one is of another type or out of range; the message names it.
        """
        sizes = _sizes(dims)
        given = sizes.pop(TRIP_COUNT, None)
        if trip_count is not None and given is not None and trip_count != given:
            raise ReadError(f"{TRIP_COUNT} is {trip_count!r}, and among the dims it is {given}")
        listed = sizes.pop(MICRO_BATCHES, None)
        if None not in (listed, micro_batches) and listed != micro_batches:
            raise ReadError(
                f"{MICRO_BATCHES} is {micro_batches!r}, and among the dims it is {listed}"
            )
        parts: Any = next((n for n in (micro_batches, listed) if n is not None), 1)
        check_size(parts, MICRO_BATCHES)
        if unknown not in ("error", "bytes"):
            raise ReadError(f"unknown must be 'error' or 'bytes', not {unknown!r}")
        if not isinstance(training, bool) and training not in ("sgd", "adam"):
            raise ReadError(f"training must be True, False, 'sgd' or 'adam', not {training!r}")
        trips: Any = given if trip_count is None else trip_count
        if trips is not None:
            check_size(trips, TRIP_COUNT)
            trips = int(trips)
        optimiser: Any = training if isinstance(training, str) else None
        return cls(
            sizes, unknown, training is True, _shapes(inputs), trips, argument_positions(weights),
            optimiser, int(parts),
        )  # fmt: skip # pyright: ignore[reportArgumentType]

    @property
    def all_dims(self) -> dict[str, int]:
        """The dimensions with the trip count and the micro-batches among them, as a plan keeps
        them."""
        return with_trips(self.dims, self.trip_count, self.micro_batches)

    def refuse(self, model: str | Path, found: Format, taken: Collection[str]) -> None:
        """Raise a `ReadError` for an option that is given and that the format does not take."""
        for name in ("dims", "inputs"):
            if name not in taken and getattr(self, name):
                first = next(iter(getattr(self, name)))
                what = {"dims": "symbolic dimensions", "inputs": "inputs without a size"}[name]
                raise ReadError(
                    f"{model}: {found.value} has no {what}, so {first!r} cannot be set; leave it "
                    "out"
                )
        if "training" not in taken and self.training:
            raise ReadError(
                f"{model}: training=True applies to PipeDream text, not to {found.value}"
            )
        if "optimiser" not in taken and self.optimiser:
            raise ReadError(
                f"{model}: training={self.optimiser!r} applies to PyTorch and to "
                f"a loss in JAX, not to {found.value}"
            )
        if MICRO_BATCHES not in taken and self.micro_batches > 1:
            why = _UNSPLIT.format(found.value)
            raise ReadError(f"{model}: {MICRO_BATCHES}={self.micro_batches} splits {why}")
        for name, flag in ((TRIP_COUNT, "--trip-count"), ("weights", "--weight-args")):
            if name not in taken and getattr(self, name) is not None:
                raise ReadError(
                    f"{model}: {name} ({flag}) does not apply to {found.value}; leave it out"
                )


def option(flag: str, value: str) -> str:
    """Return an option as a shell takes it, such as ``--dim 's0 + 1=<size>'``."""
    return f"{flag} {shlex.quote(value)}"


def with_trips(
    dims: Mapping[str, int], trip_count: int | None, micro_batches: int = 1
) -> dict[str, int]:
    """Return dimensions as a graph keeps them, so that it can be read again from them alone."""
    trips = {} if trip_count is None else {TRIP_COUNT: trip_count}
    parts = {} if micro_batches == 1 else {MICRO_BATCHES: micro_batches}
    return {**dims, **trips, **parts}


def check_size(size: object, what: str, least: int = 1) -> None:
    """Raise a `ReadError` for anything but a whole number of ``least`` or more."""
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise ReadError(f"{what} must be a whole number >= {least}, not {size!r}")
    if not least <= int(size) <= LARGEST_SIZE:
        raise ReadError(f"{what} must be at least {least} and no more than 2^62, not {size}")


def _sizes(dims: object) -> dict[str, int]:
    if dims is None:
        return {}
    if not isinstance(dims, Mapping):
        raise ReadError(f"dims must be sizes by name, such as {{'batch': 8}}, not {dims!r}")
    for name, size in dims.items():
        least = 0 if str(name).endswith(VALUE_SUFFIX) else 1
        check_size(size, f"dimension {name!r}", least)
    return {str(name): int(size) for name, size in dims.items()}


def _shapes(inputs: object) -> dict[str, tuple[int, ...] | int]:
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise ReadError(
            f"inputs must be shapes by name, such as {{'x': (1, 224, 224, 3)}}, not {inputs!r}"
        )
    return {str(name): _shape_or_value(name, given) for name, given in inputs.items()}


def _shape_or_value(name: object, given: object) -> tuple[int, ...] | int:
    if isinstance(given, Integral):  # True and False are values, too
        check_size(int(given), f"inputs: the value of {name!r}", 0)
        return int(given)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ReadError(
            f"inputs: {name!r} must have a shape, such as {{'x': (1, 224, 224, 3)}}, or a whole "
            f"number as its value, such as {{'rate': 16000}}, not {given!r}"
        )
    for axis, size in enumerate(given):
        check_size(size, f"inputs: {name!r}: the size of axis {axis}")
    return tuple(map(int, given))


def argument_positions(weights: object) -> tuple[int, ...] | None:
    """Return the positions of weights; a `ReadError` names what else was given."""
    if weights is None:
        return None
    given: Any = weights
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise ReadError(f"weights must list positions of arguments, such as (0, 2), not {given!r}")
    for position in given:
        if isinstance(position, bool) or not isinstance(position, Integral) or position < 0:
            raise ReadError(
                f"weights must list positions of arguments, 0 or more, not {position!r}"
            )
    return tuple(map(int, given))


def unpriced(
    operators: Mapping[str, int], unknown: Unknown, where: str | Path, then: str = "; count"
) -> list[str]:
    """Return a note about operators without a cost rule, by how often they come; none: empty.

    Raises:
        UnknownOperatorError: there are some, and ``unknown`` is ``error``.
    """
    listed = ", ".join(f"{op} ({count})" for op, count in Counter(operators).most_common())
    if operators and unknown == "error":
        raise UnknownOperatorError(
            f"{where}: operators without a known cost: {listed}{then} them by their bytes only "
            "with --unknown bytes"
        )
    return [f"operators counted by bytes only: {listed}"] if operators else []
