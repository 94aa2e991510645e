"""Sizes of a StableHLO module with unknown ones (``tensor<?x4xf32>``), by StableHLO's own passes.

JAX exports such a module for symbolic shapes; it computes every size from those of the arguments.
The arguments are given static types, and the refinement pass carries those through the module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.arithmetic.size_expression import names_of, size_of
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import mlir_context
from go_rl.graphs.readers.model_options import option

_UNKNOWN = re.compile(r"tensor<(?:[\d?]+x)*\?x")
_SPECIFICATIONS = re.compile(r"polymorphic shapes specifications: (.*?)\. (?:Obtained|Please)")
_SHAPE = re.compile(r"\.shape = \(((?:[^()]|\([^()]*\))*)\)")
_INNER = "dynamic_main"


def has_unknown_sizes(text: str) -> bool:
    """Whether a module's text has arrays of which a size is unknown."""
    return _UNKNOWN.search(text) is not None


def with_sizes(content: str | bytes, text: str, dims: Mapping[str, int]) -> bytes:
    """Return the module, as MLIR bytecode, with every size known.

    Args:
        content: the module, as text or bytecode.
        text: its text, in which large constants may be left out.
        dims: sizes by the names of JAX's dimension variables, such as ``b``, or by argument and
            axis, such as ``arg0.1``.

    Raises:
        ReadError: a size is not given, or a name that is given is none of the module's.
    """
    # jax exports no public way to write MLIR.
    from jax._src.interpreters import mlir
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func, stablehlo

    context = mlir_context()
    with context, ir.Location.unknown(context):
        module: Any = ir.Module.parse(content)
        symbols = ir.SymbolTable(module.operation)
        main: Any = symbols["main"]
        dynamic = list(main.type.inputs)
        static = [_sized(ir, *pair) for pair in zip(dynamic, _shapes(text, dynamic, dims),
                                                    strict=True)]  # fmt: skip
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        symbols.set_symbol_name(main, _INNER)
        results = main.type.results
        entry: Any = func.FuncOp(
            "main",
            ir.FunctionType.get(static, results),
            ip=ir.InsertionPoint.at_block_begin(module.body),
        )
        with ir.InsertionPoint(entry.add_entry_block()):
            pairs = zip(entry.arguments, dynamic, strict=True)
            operands = [a if a.type == t else stablehlo.convert(t, a) for a, t in pairs]
            call = func.CallOp(results, ir.FlatSymbolRefAttr.get(_INNER), operands)
            func.ReturnOp(list(call.results))
        return _jax.mlir.refine_polymorphic_shapes(
            mlir.module_to_bytecode(module), enable_shardy="sdy." in text
        )


def _sized(ir: Any, dynamic: Any, shape: Sequence[int] | None) -> Any:
    return dynamic if shape is None else ir.RankedTensorType.get(shape, dynamic.element_type)


def _shapes(
    text: str, types: Sequence[Any], dims: Mapping[str, int]
) -> list[tuple[int, ...] | None]:
    """The static shape of each argument; None for one that has no unknown size."""
    sizes = {
        i: [None if t.is_dynamic_dim(axis) else t.get_dim_size(axis) for axis in range(t.rank)]
        for i, t in enumerate(types)
        if str(t).startswith("tensor<") and t.has_rank and not t.has_static_shape
    }
    written = _written(text, sizes)
    _check_names(written, dims)
    shapes: list[tuple[int, ...] | None] = [None] * len(types)
    for i, axes in sizes.items():
        shapes[i] = tuple(
            _size(i, axis, written[i, axis], dims) if size is None else size
            for axis, size in enumerate(axes)
        )
    return shapes


def _written(
    text: str, sizes: Mapping[int, Sequence[int | None]]
) -> dict[tuple[int, int], str | None]:
    """Text that JAX wrote for each unknown size, by argument and axis; None where it wrote
    nothing."""
    found = _SPECIFICATIONS.search(text)
    rows = [_terms(row) for row in _SHAPE.findall(found[1])] if found else []
    ranks = [len(axes) for axes in sizes.values()]
    known = ranks == [len(row) for row in rows]
    return {
        (i, axis): rows[row][axis] if known else None
        for row, (i, axes) in enumerate(sizes.items())
        for axis, size in enumerate(axes)
        if size is None
    }


def _terms(row: str) -> list[str]:
    """The sizes of ``b, max(c, 2)``."""
    return [term.strip() for term in re.split(r",(?![^(]*\))", row) if term.strip()]


def _place(i: int, axis: int) -> str:
    return f"arg{i}.{axis}"


def _check_names(written: Mapping[tuple[int, int], str | None], dims: Mapping[str, int]) -> None:
    variables = {name for term in written.values() for name in names_of(term or "")}
    places = {_place(*where) for where in written}
    for name in dims:
        if name not in variables | places:
            if not places:
                raise ReadError(f"every size of the module is known, so {name!r} cannot be set")
            raise ReadError(
                f"no size of the module is called {name!r}{nearest(name, variables | places)} "
                f"Its unknown sizes are {', '.join(sorted(variables or places))}"
            )


def _size(i: int, axis: int, term: str | None, dims: Mapping[str, int]) -> int:
    place = _place(i, axis)
    size = dims.get(place) if term is None or place in dims else size_of(term, dims)
    if size is not None and size >= 1:
        return size
    if size is not None:
        raise ReadError(f"size {axis} of argument {i}, {term}, would be {size}; it must be >= 1")
    missing = sorted(names_of(term or "") - dims.keys())
    if not missing:
        missing, term = [place], term or "?"
    ways = " ".join(option("--dim", f"{name}=8") for name in missing)
    sizes = ", ".join(f"{name!r}: 8" for name in missing)
    raise ReadError(
        f"size {axis} of argument {i}, {term}, is unknown; give it, such as {ways} "
        f"(dims={{{sizes}}})"
    )
