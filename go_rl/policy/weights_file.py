"""Trained weights of policies, each a parameter file (`go_rl.runtime.parameter_file`).

A name such as ``partition-1.0`` is interface-major, weights-minor: files of another major are
refused, files of another minor hold other numbers for the same network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from go_rl.core import CheckpointError, PolicyError
from go_rl.core.errors import nearest
from go_rl.policy.config import PolicyConfig
from go_rl.runtime.parameter_file import (
    check_digest,
    check_parameters,
    parameter_tree,
    read_parameters,
    write_parameters,
)

INTERFACE = 1
"""Major version: what the networks take and give."""
SHIPPED = Path(__file__).parent / "pretrained"
OF_COMMANDS = (
    "; go-rl optimize takes the weights that go-rl train policy or finetune wrote for the same "
    "objective"
)

Template = Callable[[PolicyConfig], Any]
"""Parameters of an untrained network of some configuration: what a file must hold."""


@dataclass(frozen=True, eq=False)
class WeightsFile:
    """What a file holds."""

    config: PolicyConfig
    params: Any
    name: str
    card: Mapping[str, Any]


def write_weights_file(
    path: str | Path,
    kind: str,
    name: str,
    network: tuple[PolicyConfig, Any],
    card: Mapping[str, Any],
) -> None:
    """Write weights of a kind of policy; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    config, params = network
    manifest = {
        "format": kind,
        "interface": INTERFACE,
        "name": name,
        "config": asdict(config),
        "card": dict(card),
    }
    write_parameters(Path(path), params, manifest)


def read_weights_file(source: str | Path, kind: str, template: Template) -> WeightsFile:
    """Read weights of a kind by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another kind or interface.
    """
    path = _path(source)
    written = path.stat()
    return _load(path, kind, template, written.st_mtime_ns, written.st_size)


@cache
def _load(path: Path, kind: str, template: Template, time_written: int, size: int) -> WeightsFile:
    """Read a file once; another file in its place is another key."""
    manifest, arrays = read_parameters(path)
    if manifest.get("format") != kind:
        other = manifest.get("format")
        what = f" but {other!r}{OF_COMMANDS}" if other else ""
        raise CheckpointError(f"{path}: is not a policy's weights file of kind {kind!r}{what}")
    if manifest.get("interface") != INTERFACE:
        raise CheckpointError(
            f"{path}: weights of interface {manifest.get('interface')}; this version of go_rl "
            f"reads interface {INTERFACE}. Train anew, or use one of "
            f"{', '.join(shipped_weights())}"
        )
    check_digest(path, manifest, arrays)
    try:
        config = PolicyConfig(**manifest["config"])
        name, card = str(manifest["name"]), dict(manifest["card"])
    except (KeyError, TypeError, ValueError, PolicyError) as error:
        raise CheckpointError(
            f"{path}: its manifest does not fit this version ({type(error).__name__}: {error})"
        ) from error
    if path.parent != SHIPPED:  # the tests check what ships; tracing a template takes half a second
        check_parameters(path, arrays, _shapes(template, config))
    return WeightsFile(config, parameter_tree(arrays), name, card)


@cache
def _shapes(template: Template, config: PolicyConfig) -> Any:
    """Shapes of the parameters of a configuration; to trace the network takes half a second."""
    return jax.eval_shape(lambda: template(config))


def shipped_weights() -> tuple[str, ...]:
    """Return the names of the weights that ship with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.npz")))


def _path(source: str | Path) -> Path:
    named = SHIPPED / f"{source}.npz"
    if isinstance(source, str) and "/" not in source and named.exists():
        return named
    path = Path(source)
    if not path.exists():
        names = shipped_weights()
        raise CheckpointError(
            f"no weights {str(source)!r}{nearest(str(source), names)} "
            f"Give a file, or one of {', '.join(names) or '(none are shipped)'}"
        )
    return path
