"""Models whose kernels can be compiled here: JAX functions, of the zoo or of the user."""

from __future__ import annotations

from pathlib import Path

from go_rl.costs.kernels.measure.exported import zoo_program
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.graphs.readers.jax.target import read_jax_program
from go_rl.graphs.readers.recognise import names_function
from go_rl.graphs.zoo.load_model import ZOO_PREFIX
from go_rl.tuning.config import TuningError


def load_program(model: str) -> JaxProgram:
    """Return a model as a program whose parts can be compiled.

    Args:
        model: ``zoo:NAME``, or ``module:function`` (``file.py:function``) for a JAX function.

    Raises:
        ReadError: no such function, or one that cannot be cut into kernels.
        TuningError: a file of another format.
        ZooError: no such model of the zoo; the nearest is named.
    """
    if model.startswith(ZOO_PREFIX):
        from go_rl.graphs.zoo.models.inventory import zoo_model

        return zoo_program(zoo_model(model.removeprefix(ZOO_PREFIX)))
    if names_function(model):
        return read_jax_program(model)
    what = "is a file: only" if Path(model).exists() else "is no model that can be tuned: only"
    raise TuningError(
        f"{model}: {what} JAX functions can be compiled kernel by kernel; give zoo:NAME (go-rl zoo "
        "list) or module:function"
    )
