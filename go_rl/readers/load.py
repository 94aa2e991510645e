"""`load`: the one door through which every model becomes an `OpGraph`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from go_rl.core import OpGraph, ReadError
from go_rl.readers.archive import load_graph
from go_rl.readers.dnn_partitioning import read_dnn_partitioning
from go_rl.readers.hlo_reader import read_hlo
from go_rl.readers.pipedream import read_pipedream
from go_rl.readers.recognise import Format, recognise
from go_rl.readers.stablehlo_reader import read_stablehlo

Unknown = Literal["error", "bytes"]
"""What to do with an operator whose cost is unknown: refuse it, or count its bytes only."""


def load(
    model: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    training: bool = False,
) -> OpGraph:
    """Read a model in any accepted format, recognised from its content.

    Args:
        model: a file (ONNX, go_rl ``.npz``, dnn-partitioning JSON, PipeDream text, HLO or StableHLO
            text), or ``module:function`` for a JAX function when no such file exists.
        dims: values for the model's symbolic dimensions, such as ``{"batch": 8}``.
        unknown: ``"error"`` refuses operators of unknown cost, ``"bytes"`` counts their bytes.
        training: expand a PipeDream profile into its forward and backward pass.

    Raises:
        ReadError: no such file, an unknown format, damaged content, or an option that the format
            does not have; the message names the file.
        UnknownOperatorError: an operator of unknown cost and ``unknown="error"``.
    """
    path = Path(model)
    if _is_target(str(model)) and not path.exists():
        from go_rl.readers.jax_inline import JaxOptions
        from go_rl.readers.jax_target import read_jax_target

        _refuse(str(model), Format.JAX, training=training)
        return read_jax_target(str(model), dims, JaxOptions(unknown=unknown))
    found = recognise(path)
    if found is Format.ONNX:
        from go_rl.readers.onnx_reader import read_onnx

        _refuse(path, found, training=training)
        return read_onnx(path, dims, unknown)
    _refuse(path, found, dims, training and found is not Format.PIPEDREAM)
    if found is Format.ARCHIVE:
        return load_graph(path)
    if found is Format.HLO:
        return read_hlo(path, unknown)
    if found is Format.STABLEHLO:
        return read_stablehlo(path, unknown)
    if found is Format.PIPEDREAM:
        return read_pipedream(path, training)
    return read_dnn_partitioning(path)


def _is_target(model: str) -> bool:
    return re.fullmatch(r"[^:\s]+:[A-Za-z_][\w.]*", model) is not None


def _refuse(
    model: str | Path,
    found: Format,
    dims: Mapping[str, int] | None = None,
    training: bool = False,
) -> None:
    if dims:
        name = next(iter(dims))
        raise ReadError(
            f"{model}: {found.value} has no symbolic dimensions, so {name!r} cannot be set; "
            "leave the dimensions out"
        )
    if training:
        raise ReadError(f"{model}: training=True applies to PipeDream text, not to {found.value}")
