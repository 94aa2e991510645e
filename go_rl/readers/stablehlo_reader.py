"""StableHLO text (MLIR as ``lowered.as_text()`` prints it) as a graph, by way of HLO.

XLA's own parser reads the text and translates it to HLO, so every printed form, `chlo` operator and
composite that this version of jaxlib knows is covered by one reader of truth: `hlo_reader`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from go_rl.core import MissingDependencyError, OpGraph, ReadError
from go_rl.readers.hlo_reader import graph_of_hlo

FORMAT = "stablehlo"


def read_stablehlo(
    path: str | Path,
    unknown: str = "error",
    weights: Collection[int] = (),
    trip_count: int | None = None,
) -> OpGraph:
    """Read a StableHLO file; options, costs and errors as in `read_hlo`.

    Raises:
        ReadError: XLA cannot parse or translate the text; its first complaint is quoted.
        UnknownOperatorError: see `read_hlo`.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"{path}: cannot be read as text ({error})") from error
    return graph_of_hlo(_hlo_text(text, path), path, FORMAT, (unknown, trip_count), weights)


def _hlo_text(text: str, path: Path) -> str:
    try:
        # jax exports no public way from MLIR text to HLO.
        from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise MissingDependencyError(
            "StableHLO text needs a jaxlib with its MLIR bindings; pip install -U jax"
        ) from error
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(
            text, use_tuple_args=False, return_tuple=False
        )
    # jaxlib raises several unrelated classes, RuntimeError among them.
    except Exception as error:
        complaint = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise ReadError(f"{path}: XLA cannot read this StableHLO text: {complaint}") from error
    options = _hlo.HloPrintOptions()
    options.print_metadata = True
    options.print_large_constants = False
    return computation.get_hlo_module().to_string(options)
