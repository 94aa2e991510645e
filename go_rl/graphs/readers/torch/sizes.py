"""Sizes of a program's symbols, from the user's ``--dim`` and ``--input``.

A symbol has the name that PyTorch gave it, such as ``s77``; ``<input>_<axis>`` names the symbol of
an axis of an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.arithmetic.size_expression import names_of, size_of
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.model_options import LARGEST_SIZE, Inputs, option
from go_rl.graphs.readers.torch.program.schema import (
    Ref,
    Spec,
    SymRef,
    TensorType,
    TorchGraph,
    TorchProgram,
)
from go_rl.graphs.readers.torch.program.symbols import Size

TRIPS_SUFFIX = ".trips"
"""``<node>.trips`` names the trips of a loop among the dimensions."""


@dataclass(frozen=True)
class SizeTable:
    """Sizes of symbols, and what follows from them."""

    symbols: Mapping[str, int]
    trips: Mapping[str, int] = field(default_factory=dict)
    """Trips of loops by node, of those that the user gave."""

    @property
    def all_dims(self) -> dict[str, int]:
        """The symbols, and the trips of loops, by the names that give them."""
        return {**self.symbols, **{f"{n}{TRIPS_SUFFIX}": v for n, v in self.trips.items()}}

    def number(self, size: Size | None) -> int | None:
        """Return the number of a size; None: it does not follow from the symbols."""
        return size if isinstance(size, int) or size is None else size_of(size, self.symbols)

    def tensor(self, kind: TensorType, where: str) -> Tensor:
        """Return a tensor type with numbers for sizes.

        Raises:
            ReadError: a size does not follow from the symbols, or no tensor has it.
        """
        shape = tuple(self._extent(each, where) for each in kind.sizes)
        tensor = Tensor(shape, kind.itemsize, kind.type)
        if tensor.size > LARGEST_SIZE:
            raise ReadError(f"{where}: its shape {_times(kind.sizes)} has more than 2^62 elements")
        return tensor

    def _extent(self, size: Size, where: str) -> int:
        number = self.number(size)
        if number is None:
            raise ReadError(f"{where}: its size {size!r} does not follow from the dimensions given")
        if not 0 <= number <= LARGEST_SIZE:
            raise ReadError(f"{where}: its size {size!r} is {number}; it must be 0 to 2^62")
        return number


def bind_sizes(
    program: TorchProgram, dims: Mapping[str, int], inputs: Inputs, where: str
) -> SizeTable:
    """Return the sizes of all symbols of a program.

    Raises:
        ReadError: a symbol has no size, two, or one outside its range; a name is unknown; an input
            has another shape.
    """
    symbols = _symbols(program)
    axes = dict(_axes(program))
    trips = {n: v for n, v in dims.items() if n.endswith(TRIPS_SUFFIX)}
    loops = {f"{name}{TRIPS_SUFFIX}" for name in loop_names(program.graph)}
    found: dict[str, int] = {}
    for name, value in {**dims, **_sizes_of_inputs(program, inputs, where)}.items():
        if name in loops:
            continue
        symbol = name if name in symbols else axes.get(name)
        if symbol is None:
            known = sorted({*symbols, *loops})
            listed = f" It has {', '.join(known)}" if known else " All its sizes are fixed"
            raise ReadError(f"{where}: no dimension {name!r}{nearest(name, known)}{listed}")
        if found.setdefault(symbol, value) != value:
            raise ReadError(f"{where}: {symbol} has two sizes, {found[symbol]} and {value}")
    _check_ranges(program, found, where)
    if absent := [s for s in symbols if s not in found]:
        raise ReadError(_wanted(program, absent, axes, where))
    table = SizeTable(found, {n.removesuffix(TRIPS_SUFFIX): v for n, v in trips.items()})
    _check_inputs(program, inputs, table, where)
    return table


def loop_names(graph: TorchGraph) -> Iterator[str]:
    """Yield the nodes whose trips are decided while the program runs."""
    for node in graph.nodes:
        if "higher_order.while_loop" in node.target:
            yield node.name
        for inner in subgraphs(node.inputs):
            yield from loop_names(inner)


def subgraphs(arguments: tuple) -> Iterator[TorchGraph]:
    """Yield the graphs among an operator's operands."""
    for argument in arguments:
        if isinstance(argument.value, TorchGraph):
            yield argument.value


def user_inputs(program: TorchProgram) -> Iterator[tuple[str, Spec]]:
    """Yield the inputs that the user gives in each iteration."""
    for spec in program.inputs:
        if spec.kind == "user_input" and isinstance(spec.value, Ref | SymRef):
            yield spec.value.name, spec


def _symbols(program: TorchProgram) -> list[str]:
    """Return the symbols that sizes of tensors need, those of inputs first."""
    found: dict[str, None] = {}

    def visit(graph: TorchGraph) -> None:
        texts = dict.fromkeys(
            each for t in graph.tensors.values() for each in t.sizes if isinstance(each, str)
        )
        for text in texts:
            found.update(dict.fromkeys(sorted(names_of(text))))
        for node in graph.nodes:
            for inner in subgraphs(node.inputs):
                visit(inner)

    visit(program.graph)
    return list(found)


def _axes(program: TorchProgram) -> Iterator[tuple[str, str]]:
    """Yield ``<input>_<axis>`` and the symbol of each axis that has one."""
    for name, _ in user_inputs(program):
        kind = program.graph.tensors.get(name)
        for axis, size in enumerate(kind.sizes if kind else ()):
            if isinstance(size, str) and size.isidentifier():
                yield f"{name}_{axis}", size
        if isinstance(number := program.graph.numbers.get(name), str) and number.isidentifier():
            yield name, number


def _sizes_of_inputs(program: TorchProgram, inputs: Inputs, where: str) -> dict[str, int]:
    """Return the sizes of axes that have a symbol, of the inputs whose shapes the user gave."""
    known = [name for name, _ in user_inputs(program)]
    axes = dict(_axes(program))
    found: dict[str, int] = {}
    for name, given in inputs.items():
        if name not in known:
            raise ReadError(
                f"{where}: no input {name!r}{nearest(name, known)} It has {', '.join(known)}"
            )
        if isinstance(given, int):
            if name not in axes:
                raise ReadError(f"{where}: input {name!r} needs a shape, not a value, {given}")
            found[name] = given
            continue
        for axis, size in enumerate(given):
            if f"{name}_{axis}" in axes:
                found[f"{name}_{axis}"] = size
    return found


def _check_inputs(program: TorchProgram, inputs: Inputs, table: SizeTable, where: str) -> None:
    for name, given in inputs.items():
        if isinstance(given, int):
            continue
        kind = program.graph.tensors[name]
        shape = table.tensor(kind, f"{where}: input {name!r}").shape
        if shape != tuple(given):
            raise ReadError(
                f"{where}: input {name!r} has shape {_times(kind.sizes)}, not {_times(given)}; "
                "export the model with that shape, or with dynamic_shapes"
            )


def _times(sizes: object) -> str:
    return "x".join(map(str, sizes)) or "()"  # pyright: ignore[reportArgumentType,reportCallIssue]


def _check_ranges(program: TorchProgram, found: Mapping[str, int], where: str) -> None:
    for symbol, value in found.items():
        least, most = program.ranges.get(symbol, (0, None))
        if value < least or (most is not None and value > most):
            raise ReadError(
                f"{where}: {symbol} must be {_limits(least, most)}, not {value}: the program was "
                "exported for that range"
            )


def _limits(least: int, most: int | None) -> str:
    return f"{least} or more" if most is None else f"{least} to {most}"


def _wanted(program: TorchProgram, absent: list[str], axes: Mapping[str, str], where: str) -> str:
    """The message for symbols without a size, with what can be pasted into a shell."""
    told = []
    for symbol in absent:
        places = [name for name, of in axes.items() if of == symbol]
        limits = _limits(*program.ranges.get(symbol, (0, None)))
        example = program.examples.get(symbol)
        told.append(
            f"{symbol} ({limits}{', ' + ' = '.join(places[:3]) if places else ''}"
            f"{f', {example} in the example' if example is not None else ''})"
        )
    hint = " ".join(option("--dim", f"{each}={_example(program, each)}") for each in absent)
    return f"{where}: sizes are missing of {'; '.join(told)}: for example {hint}"


def _example(program: TorchProgram, symbol: str) -> int:
    """The size of the example that a program was exported with, else one in the symbol's range."""
    least, most = program.ranges.get(symbol, (0, None))
    return program.examples.get(symbol, max(least, 8 if most is None else min(8, most)))
