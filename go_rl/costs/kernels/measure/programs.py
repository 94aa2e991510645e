"""Kernels of a model as they travel to a worker, kept in a file: tracing a model takes longer than
measuring a few of its kernels again."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from go_rl.core import ReadError
from go_rl.core.files.whole_file import write_bytes
from go_rl.costs.kernels.measure.worker import ArrayType, KernelTask
from go_rl.costs.timing.config import CollectConfig

CONTENTS = "contents.json"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile)


def save_programs(tasks: Mapping[str, KernelTask], path: Path, config: CollectConfig) -> None:
    """Write the kernels of a model.

    Args:
        tasks: by hash of the kernel, under no setting.
        path: whose folder is made; an older file is replaced.
        config: platform that they are exported for.
    """
    contents = {
        **_made_by(config),
        "kernels": {h: {"weights": t.weights, "inputs": t.inputs} for h, t in tasks.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(CONTENTS, json.dumps(contents))
        for hash_, task in tasks.items():
            archive.writestr(hash_, task.program)
    write_bytes(path, out.getvalue())


def load_programs(path: Path, config: CollectConfig, full_pace: float) -> dict[str, KernelTask]:
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
                hash_: KernelTask(
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
