"""`read_model`: networks from every format of `go-rl predict` that says what it computes."""

from __future__ import annotations

from pathlib import Path

from go_rl.graphs.readers.model_options import ModelOptions
from go_rl.graphs.readers.recognise import Format, names_function, recognise
from go_rl.graphs.zoo.load_model import ZOO_PREFIX
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.model import TunableNetwork


def read_model(
    model: str | Path, options: ModelOptions | None = None, seed: int = 0
) -> TunableNetwork:
    """Read a network with its weights; those that it has none of are random.

    Args:
        model: an ONNX file, HLO text, StableHLO, ``module:function`` or ``zoo:NAME``.
        options: ``dims``: sizes of symbolic dimensions. ``inputs``: shapes of inputs of an ONNX
            model by name. ``weights``: positions of the arguments of a JAX function, or of the
            parameters of HLO, that are weights; None: of HLO none, else see
            `go_rl.graphs.readers.jax.reader.trace_jax`.
        seed: of random weights.

    Raises:
        MissingDependencyError: the zoo's network needs Keras.
        ReadError: it cannot be read, a dimension has no size, or an option is of another format.
        TuningError: it does not say what it computes, or computes in another type than float32.
        ZooError: the zoo has no such network.
    """
    options = options or ModelOptions()
    if str(model).startswith(ZOO_PREFIX) and not Path(model).exists():
        return _zoo_network(str(model).removeprefix(ZOO_PREFIX), options, seed)
    if names_function(model):
        return _function(str(model), options, seed)
    found = recognise(Path(model))
    taken = {Format.ONNX: ("dims", "inputs")}.get(found, ("weights",))
    options.refuse(model, found, taken)
    if found is Format.ONNX:
        from go_rl.tuning.tvm.models.onnx_file import read_network

        return read_network(model, options.dims, options.inputs)
    if found in (Format.HLO, Format.STABLEHLO):
        from go_rl.tuning.tvm.models.hlo_network import read_hlo_network

        return read_hlo_network(Path(model), found, options.weights or (), seed)
    raise TuningError(
        f"{model}: {found.value} says what operators cost, not what they compute; give an ONNX "
        "file, HLO text, StableHLO, module:function or zoo:NAME"
    )


def _zoo_network(name: str, options: ModelOptions, seed: int) -> TunableNetwork:
    from go_rl.graphs.zoo.load_model import SIZED_NAMES, sized_network
    from go_rl.graphs.zoo.models.inventory import zoo_model
    from go_rl.tuning.tvm.models.jax_function import jax_network

    options.refuse(f"{ZOO_PREFIX}{name}", Format.JAX, ("dims",))
    if name in SIZED_NAMES:
        return jax_network(name, *sized_network(name, options.dims), seed)
    options.refuse(f"{ZOO_PREFIX}{name}", Format.JAX, ())
    return jax_network(name, *zoo_model(name).build(), seed)


def _function(target: str, options: ModelOptions, seed: int) -> TunableNetwork:
    from go_rl.graphs.readers.jax.target import resolved_target
    from go_rl.tuning.tvm.models.jax_function import jax_network

    options.refuse(target, Format.JAX, ("dims", "weights"))
    with resolved_target(target, options.dims) as (name, (function, args, given)):
        chosen = given if options.weights is None else options.weights
        return jax_network(name, function, args, chosen, seed)
