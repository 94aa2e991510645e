"""Kernels as they travel to the process that measures them: exported programs, and a file of those
of a model, for tracing a model takes longer than measuring a few of its kernels again."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.core import ReadError
from go_rl.core.files.whole_file import write_bytes
from go_rl.core.printable import sentence_of
from go_rl.costs.kernels.measure.worker import ArrayType, KernelRequest
from go_rl.costs.timing.config import CollectConfig
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.graphs.zoo.freeze import UNROLL_LIMIT
from go_rl.graphs.zoo.models.building import ZooModel

Types = tuple[jax.ShapeDtypeStruct, ...]


def zoo_program(model: ZooModel) -> JaxProgram:
    """Return a model of the zoo as a program that can be cut into its kernels."""
    function, args, weights = model.build()
    options = JaxOptions(unroll_limit=UNROLL_LIMIT)
    return jax_program(function, args, weights=weights, name=model.name, options=options)


def part_request(
    program: JaxProgram, nodes: Sequence[int], config: CollectConfig, full_pace: float
) -> KernelRequest | str:
    """Return some nodes of a program as they travel to a worker, or why they cannot."""
    try:
        stage = program.part(nodes)
        types = stage.weight_types, stage.input_types
        return kernel_request(stage.function, *types, config, full_pace)
    except Exception as error:  # whatever JAX cannot export
        return f"cannot be exported: {sentence_of(error)}"


def kernel_request(
    function: Callable[..., Any],
    weights: Types,
    inputs: Types,
    config: CollectConfig,
    full_pace: float,
) -> KernelRequest:
    """Return a function of two tuples of arrays as it travels to a worker, random keys as the
    numbers that they consist of.

    Args:
        function: what the kernel computes.
        weights: of the first tuple.
        inputs: of the second.
        config: platform and timing.
        full_pace: see `go_rl.costs.timing.core_speed.CoreSpeed`.

    Raises:
        ValueError: there is no such platform.
    """

    def of_numbers(*arrays: tuple[jax.Array, ...]) -> Any:
        made = [
            tuple(map(_key_of, group, kinds))
            for group, kinds in zip(arrays, (weights, inputs), strict=True)
        ]
        return jax.tree.map(_numbers_of, function(*made))

    exported = jax.export.export(jax.jit(of_numbers), platforms=(config.platform,))
    sent = [tuple(map(_numbers_type, kinds)) for kinds in (weights, inputs)]
    return KernelRequest(
        bytes(exported(*sent).serialize()),
        *(tuple((tuple(t.shape), str(t.dtype)) for t in types) for types in sent),
        full_pace=full_pace,
        timing=config.timing,
    )


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def _numbers_of(array: Any) -> Any:
    return jax.random.key_data(array) if _is_key(array) else array


def _numbers_type(kind: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.eval_shape(_numbers_of, kind)


def _key_of(numbers: jax.Array, kind: jax.ShapeDtypeStruct) -> jax.Array:
    """The operand of this type that consists of these numbers."""
    if not _is_key(kind):
        return numbers
    generators: list[Any] = []  # only a traced key tells its generator
    jax.eval_shape(lambda key: generators.append(jax.random.key_impl(key)), kind)
    return jax.random.wrap_key_data(numbers, impl=generators[0])


CONTENTS = "contents.json"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile)


def save_programs(requests: Mapping[str, KernelRequest], path: Path, config: CollectConfig) -> None:
    """Write the kernels of a model.

    Args:
        requests: by hash of the kernel, under no setting.
        path: whose folder is made; an older file is replaced.
        config: platform that they are exported for.
    """
    contents = {
        **_made_by(config),
        "kernels": {h: {"weights": t.weights, "inputs": t.inputs} for h, t in requests.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(CONTENTS, json.dumps(contents))
        for hash_, request in requests.items():
            archive.writestr(hash_, request.program)
    write_bytes(path, out.getvalue())


def load_programs(path: Path, config: CollectConfig, full_pace: float) -> dict[str, KernelRequest]:
    """Return what `save_programs` wrote, to be timed as told; nothing where there is no file, or
    one of another version of JAX or for another platform.

    Raises:
        ReadError: the file is damaged.
    """
    if not path.exists():
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            contents = json.loads(archive.read(CONTENTS))
            if any(contents[name] != value for name, value in _made_by(config).items()):
                return {}
            return {
                hash_: KernelRequest(
                    program=archive.read(hash_),
                    weights=_operands(told["weights"]),
                    inputs=_operands(told["inputs"]),
                    full_pace=full_pace,
                    timing=config.timing,
                )
                for hash_, told in contents["kernels"].items()
            }
    except _DAMAGED as error:
        raise ReadError(
            f"{path}: must hold the programs of kernels ({error}); delete it, and they are traced "
            "again"
        ) from error


def _made_by(config: CollectConfig) -> dict[str, Any]:
    return {"jax": jax.__version__, "platform": config.platform}


def _operands(told: list[list[Any]]) -> tuple[ArrayType, ...]:
    return tuple((tuple(map(int, shape)), str(dtype)) for shape, dtype in told)
