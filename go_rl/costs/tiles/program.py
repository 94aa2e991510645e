"""`TileProgram`: one kernel that is tiled, a heavy operator and its fused epilogue."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from go_rl.core.errors import nearest
from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.tiles.loops import (
    DIMENSIONS,
    Loop,
    Operand,
    TileError,
    input_shapes_of,
    json_object,
    loops_of,
    operands_of,
    whole_number,
)
from go_rl.runtime.records import canonical_json

if TYPE_CHECKING:
    from go_rl.core import OpGraph

EPILOGUE_STEPS = ("add", "bias", "gelu", "relu", "scale", "sigmoid", "tanh")
"""Steps of an epilogue. ``bias``: a vector along the last dimension; ``add``: an array of the
result's shape; ``scale``: times `SCALE`; ``gelu``: the one by tanh."""

SCALE = 0.125
MAY_BE_ZERO = frozenset(("axis", "padding"))
FIELDS = ("dtype", "epilogue", "op", "sizes")


@dataclass(frozen=True)
class TileProgram:
    """A kernel on row-major float32 arrays.

    Raises:
        TileError: an operator, size, epilogue or number format that cannot be.
    """

    op: str
    """A key of `DIMENSIONS`."""
    sizes: tuple[int, ...]
    """One number for each of ``DIMENSIONS[op]``."""
    epilogue: str = "none"
    """``none``, or `EPILOGUE_STEPS` in the order of work, joined by ``+``: ``bias+relu``."""
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.op not in DIMENSIONS:
            known = ", ".join(DIMENSIONS)
            raise TileError(f"unknown op {self.op!r}{nearest(self.op, DIMENSIONS)} Use {known}")
        if self.dtype != "float32":
            raise TileError(f"{self.op}: dtype must be 'float32', not {self.dtype!r}")
        self._check_sizes()
        self._check_epilogue()

    def _check_sizes(self) -> None:
        names = DIMENSIONS[self.op]
        if len(self.sizes) != len(names):
            raise TileError(
                f"{self.op} has sizes {', '.join(names)}, not {len(self.sizes)} numbers"
            )
        for name, size in self.dims.items():
            _check_size(self.op, name, size)
        if self.dims.get("axis", 0) > 1:
            raise TileError(f"{self.op}: axis must be 0 or 1, not {self.dims['axis']}")
        if any(loop.extent < 1 for loop in self.loops):
            raise TileError(f"{self.op}: the kernel exceeds the padded image: {self.dims}")
        if self.op == "conv2d" and self.dims["padding"] >= min(self.dims["kh"], self.dims["kw"]):
            raise TileError(f"{self.op}: padding must be smaller than the kernel: {self.dims}")

    def _check_epilogue(self) -> None:
        for step in self.steps:
            if step not in EPILOGUE_STEPS:
                raise TileError(
                    f"{self.op}: unknown epilogue step {step!r}{nearest(step, EPILOGUE_STEPS)} "
                    f"Use none, or {', '.join(EPILOGUE_STEPS)} joined by +"
                )
        if len(set(self.steps)) < len(self.steps):
            raise TileError(f"{self.op}: epilogue {self.epilogue!r} has a step twice")
        if "bias" in self.steps and self.is_reduction:
            raise TileError(f"{self.op}: a reduction's result is a vector; use 'add', not 'bias'")

    @cached_property
    def dims(self) -> dict[str, int]:
        """Sizes by name."""
        return dict(zip(DIMENSIONS[self.op], self.sizes, strict=True))

    @property
    def is_reduction(self) -> bool:
        """Whether the operator is ``reduce_sum`` or ``reduce_max``."""
        return self.op.startswith("reduce")

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the epilogue, in order."""
        return () if self.epilogue == "none" else tuple(self.epilogue.split("+"))

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Loops of the heavy operator: those of the result in its order, then the reducing ones."""
        return loops_of(self.op, self.dims)

    def loop(self, name: str) -> Loop:
        """Return the loop called ``name``."""
        return next(loop for loop in self.loops if loop.name == name)

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """Arrays that the heavy operator reads, and last the result that it adds to."""
        return operands_of(self.op, self.dims)

    @property
    def vector_loop(self) -> str:
        """The loop along the operands' last dimension: its register tile fills vectors."""
        kept = [loop.name for loop in self.loops if not loop.reduces]
        return "inner" if self.is_reduction else kept[-1]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(loop.extent for loop in self.loops if not loop.reduces)

    @cached_property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arguments by name, in the order in which a kernel takes them."""
        more = {"bias": self.output_shape[-1:], "add": self.output_shape}
        shapes = input_shapes_of(self.op, self.dims)
        return shapes | {step: more[step] for step in self.steps if step in more}

    @property
    def flops(self) -> float:
        """FLOP of the heavy operator's loops; a multiplication with a padding zero counts."""
        return (1.0 if self.is_reduction else 2.0) * prod(loop.extent for loop in self.loops)

    @property
    def bytes_accessed(self) -> float:
        """Bytes of the arguments and of the result, each once."""
        shapes = (*self.input_shapes.values(), self.output_shape)
        return float(FLOAT_BYTES * sum(prod(shape) for shape in shapes))

    @property
    def title(self) -> str:
        """Title in tables, such as ``matmul 128x768x768 bias+relu``."""
        sizes = "x".join(str(size) for size in self.sizes)
        return f"{self.op} {sizes}" + ("" if self.epilogue == "none" else f" {self.epilogue}")

    @property
    def workload(self) -> str:
        """SHA-256 of the canonical JSON, in hex: the key of the program's records."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Return the canonical JSON: sorted keys, no spaces."""
        heavy = {"op": self.op, "sizes": self.dims}
        return canonical_json(heavy | {"epilogue": self.epilogue, "dtype": self.dtype})

    @staticmethod
    def from_json(text: str) -> TileProgram:
        """Read what `to_json` wrote, in whatever order and spacing.

        Raises:
            TileError: not JSON, missing or further fields, or a program that cannot be.
        """
        found = json_object("a program is", text, FIELDS)
        op, sizes = str(found["op"]), found["sizes"]
        names = DIMENSIONS.get(op, ())
        if names and (not isinstance(sizes, dict) or set(sizes) != set(names)):
            raise TileError(f"{op}: sizes must be an object of {', '.join(names)}, not {sizes}")
        numbers = tuple(_check_size(op, name, sizes[name]) for name in names)
        return TileProgram(op, numbers, str(found["epilogue"]), str(found["dtype"]))

    def as_graph(self) -> OpGraph:
        """Return the kernel as primitive operators; see `program_graph`."""
        from go_rl.costs.tiles.graph import program_graph  # JAX, which workers do without

        return program_graph(self)


def _check_size(op: str, name: str, size: object) -> int:
    return whole_number(f"{op}: {name}", size, 0 if name in MAY_BE_ZERO else 1)
