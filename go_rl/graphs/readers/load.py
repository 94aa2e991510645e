"""`load`: the entry point that turns every model into an `OpGraph`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import OpGraph, ReadError
from go_rl.graphs.readers.archive import load_graph
from go_rl.graphs.readers.file_errors import reading
from go_rl.graphs.readers.foreign import foreign_object, is_torch_module
from go_rl.graphs.readers.hf.gguf.gguf_reader import read_gguf
from go_rl.graphs.readers.hf.reader import read_hf
from go_rl.graphs.readers.hlo.reader import read_hlo
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_reader import read_stablehlo
from go_rl.graphs.readers.model_options import (
    MICRO_BATCHES,
    TRIP_COUNT,
    Inputs,
    ModelOptions,
    Training,
    Unknown,
)
from go_rl.graphs.readers.profiles.dnn_partitioning import read_dnn_partitioning
from go_rl.graphs.readers.profiles.doppler import read_doppler
from go_rl.graphs.readers.profiles.pipedream import read_pipedream
from go_rl.graphs.readers.profiles.piper import read_piper
from go_rl.graphs.readers.python_target import PythonTarget, made_by, parameters_of, python_target
from go_rl.graphs.readers.recognise import Format, names_function, recognise

if TYPE_CHECKING:
    from go_rl.graphs.readers.jax.target import NamedFunction
    from go_rl.graphs.readers.torch.module import NamedModule

__all__ = ["Unknown", "load"]


def load(
    model: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    training: Training = False,
    *,
    inputs: Inputs | None = None,
    trip_count: int | None = None,
    weights: Collection[int] | None = None,
    micro_batches: int | None = None,
) -> OpGraph:
    """Read a model in any accepted format, recognised from its content.

    Args:
        model: a file (ONNX, a ``.pt2`` archive of PyTorch, a ``config.json`` of
            Hugging Face, a GGUF file, a LiteRT model, go_rl ``.npz``, JSON of dnn-partitioning or
            Piper, text of PipeDream or DOPPLER, HLO text, StableHLO as text or bytecode, an export
            of JAX), or ``module:name`` for a JAX function or a PyTorch module when no such file
            exists.
        dims: values for the model's symbolic dimensions, such as ``{"batch": 8}``; also
            ``{"trip_count": 8}`` for the next but one argument.
        unknown: ``"error"`` refuses operators of unknown cost, ``"bytes"`` counts their bytes.
        training: expand a PipeDream profile into its forward and backward pass; ``"sgd"`` or
            ``"adam"``: the training iteration of a PyTorch module, or of a loss in JAX, with that
            optimiser.
        inputs: shapes of inputs of an ONNX or PyTorch model by name, such as
            ``{"x": (1, 224, 224, 3)}``; another way to give its dimensions. A number is the value
            of an input of one element, such as ``{"rate": 16000}``, which may decide a branch or a
            size.
        trip_count: trips of every loop whose count does not follow from an ONNX, HLO, StableHLO or
            JAX model.
        weights: positions of the arguments (of HLO: of the parameters) that are weights, which stay
            on their devices; None: for a JAX function see `readers.jax.reader.trace_jax`.
        micro_batches: equal parts of the batch whose gradients a training iteration accumulates,
            see `readers.jax.training.micro_batches` (of a PyTorch module
            `readers.torch.program.micro_batches`); None: one. A factory with a parameter of that
            name gets it.

    Raises:
        ReadError: no such file, an unknown format, damaged content, or an option that the format
            does not have; the message names the file.
        UnknownOperatorError: an operator of unknown cost and ``unknown="error"``.
    """
    options = ModelOptions.of(dims, unknown, training, inputs, trip_count, weights, micro_batches)
    if not isinstance(model, str | Path):
        said = foreign_object(model) or repr(model)
        raise ReadError(f"a model is named by a file or module:function, and this is {said}")
    if names_function(model):
        return _load_target(str(model), options)
    with reading(model):
        return _load_file(Path(model), options)


def _load_target(model: str, options: ModelOptions) -> OpGraph:
    with open_target(model, options) as found:
        return found.graph()


@contextmanager
def open_target(model: str, options: ModelOptions) -> Iterator[NamedFunction | NamedModule]:
    """Yield the JAX function or PyTorch module that ``module:name`` names, with its arguments;
    within the context, the current folder can be imported from.

    Raises:
        ReadError: see `load`.
    """
    with python_target(model) as named:
        options = _for_factory(named, options)
        made = made_by(named, options.all_dims)
        is_module = any(map(is_torch_module, (named.thing, *_first(made))))
        yield (_module if is_module else _function)(named, made, options)


def _for_factory(named: PythonTarget, options: ModelOptions) -> ModelOptions:
    """Return the options with the micro-batches among the dims, where a factory splits the batch
    itself."""
    if options.micro_batches == 1 or MICRO_BATCHES not in parameters_of(named.thing):
        return options
    dims = {**options.dims, MICRO_BATCHES: options.micro_batches}
    return replace(options, dims=dims, micro_batches=1)


def _first(made: Any) -> tuple[Any, ...]:
    return made[:1] if isinstance(made, tuple) else (made,)


def _function(named: PythonTarget, made: Any, options: ModelOptions) -> NamedFunction:
    from go_rl.graphs.readers.jax.inline import JaxOptions
    from go_rl.graphs.readers.jax.target import named_function

    taken = ("dims", TRIP_COUNT, "unknown", "weights", "optimiser", MICRO_BATCHES)
    options.refuse(named.text, Format.JAX, taken)
    flattening = JaxOptions(unknown=options.unknown, trip_count=options.trip_count)
    return named_function(
        named, options.dims, flattening, options.weights, made, options.optimiser,
        options.micro_batches,
    )  # fmt: skip


def _module(named: PythonTarget, made: Any, options: ModelOptions) -> NamedModule:
    from go_rl.graphs.readers.torch.module import named_module

    taken = ("dims", "inputs", TRIP_COUNT, "unknown", "optimiser", MICRO_BATCHES)
    options.refuse(named.text, Format.MODULE, taken)
    return named_module(named, made, options)


def _load_file(path: Path, options: ModelOptions) -> OpGraph:
    found = recognise(path)
    options.refuse(path, found, _TAKEN[found])
    counting: dict[str, Any] = {"unknown": options.unknown, TRIP_COUNT: options.trip_count}
    match found:
        case Format.ONNX:
            from go_rl.graphs.readers.onnx.reader import read_onnx

            return read_onnx(path, options.dims, inputs=options.inputs, **counting)
        case Format.TORCH:
            from go_rl.graphs.readers.torch.reader import read_pt2

            return read_pt2(path, options)
        case Format.ARCHIVE:
            return _bound(load_graph(path), path, options)
        case Format.HUGGING_FACE:
            return read_hf(path, options.dims)
        case Format.GGUF:
            return read_gguf(path, options.dims)
        case Format.HLO:
            return read_hlo(path, weights=options.weights or (), **counting)
        case Format.STABLEHLO:
            held = options.weights or ()
            return read_stablehlo(path, weights=held, dims=options.dims, **counting)
        case Format.TFLITE:
            from go_rl.graphs.readers.tflite.tflite_reader import read_tflite

            return read_tflite(path, options.unknown)
        case Format.DOPPLER:
            return read_doppler(path)
        case Format.PIPER:
            return read_piper(path)
        case Format.PIPEDREAM:
            return read_pipedream(path, options.training)
        case _:
            return read_dnn_partitioning(path)


_TAKEN: Mapping[Format, Sequence[str]] = {
    Format.ONNX: ("dims", "inputs", TRIP_COUNT, "unknown"),
    Format.TORCH: ("dims", "inputs", TRIP_COUNT, "unknown", "optimiser"),
    Format.ARCHIVE: ("dims", TRIP_COUNT, "unknown"),
    Format.HUGGING_FACE: ("dims", "unknown"),
    Format.GGUF: ("dims", "unknown"),
    Format.HLO: (TRIP_COUNT, "unknown", "weights"),
    Format.STABLEHLO: ("dims", TRIP_COUNT, "unknown", "weights"),
    Format.PIPEDREAM: ("training", "unknown"),
    Format.DNN_PARTITIONING: ("unknown",),
    Format.PIPER: ("unknown",),
    Format.DOPPLER: ("unknown",),
    Format.TFLITE: ("unknown",),
}
"""Options that the readers of files take."""


def _bound(graph: OpGraph, path: Path, options: ModelOptions) -> OpGraph:
    """A saved graph has its sizes; giving the same ones again is no error."""
    saved = dict(graph.meta.get("dims", {}))
    for name, size in options.all_dims.items():
        if saved.get(name) != size:
            had = ", ".join(f"{k}={v}" for k, v in saved.items()) or "none"
            raise ReadError(
                f"{path}: a saved graph has no symbolic dimensions, so {name!r} cannot be set to "
                f"{size}; it was saved with dimensions: {had}"
            )
    return graph
