"""StableHLO text (MLIR as ``lowered.as_text()`` prints it) as a graph, by way of HLO.

XLA's own parser reads the text and translates it to HLO, so every printed form, `chlo` operator and
composite that this version of jaxlib knows is covered by one reader of truth: `hlo_reader`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from go_rl.core import MissingDependencyError, OpGraph, ReadError
from go_rl.readers.hlo_reader import graph_of_hlo

FORMAT = "stablehlo"
DEEPEST = 256
"""Brackets inside each other; real programs nest a few dozen."""


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


def _check_depth(text: str, path: Path) -> None:
    """XLA's parser calls itself for each bracket; too many end the process."""
    letters = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    opening = np.isin(letters, np.frombuffer(b"([{<", np.uint8))
    closing = np.isin(letters, np.frombuffer(b")]}>", np.uint8))
    arrow = (letters[1:] == ord(">")) & (letters[:-1] == ord("-"))
    closing[1:] &= ~arrow
    depth = np.cumsum(opening.astype(np.int32) - closing)
    if depth.max(initial=0) > DEEPEST:
        line = text.encode()[: int(np.argmax(depth > DEEPEST))].count(b"\n") + 1
        raise ReadError(f"{path}:{line}: brackets are nested deeper than {DEEPEST}")


def _hlo_text(text: str, path: Path) -> str:
    _check_depth(text, path)
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
