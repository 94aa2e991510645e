"""`Manifest`: the stages of an exported plan, and the tensors between them; ``stages.json``."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from go_rl.core import Plan, PlanError
from go_rl.core.files.strict_json import read_json, shown
from go_rl.core.files.typed_json import from_json

FORMAT = "go_rl-stages-2"
FILE = "stages.json"
FROM_USER = -1
"""Sender of the model's own inputs."""
RUNTIMES = ("onnxruntime", "jax", "torch")


@dataclass(frozen=True)
class StageTensor:
    """A tensor that enters or leaves a stage."""

    name: str
    """The name that it has in the user's model."""
    element_type: str
    """ONNX's name of the element type, such as ``FLOAT``."""
    shape: tuple[int | str | None, ...] | None
    """Extents: numbers, names of dimensions that the model leaves open, or None where an extent is
    not known; None: not even their number is."""
    sender: int = FROM_USER
    """Stage that makes it, or `FROM_USER`."""
    is_weight: bool = False
    """Whether it is an array that stays on its device; those of ONNX files lie in the files."""


@dataclass(frozen=True)
class Stage:
    """Operators of one device that run as one program."""

    file: str
    """Program beside the manifest: an ONNX file, a program of `jax.export` or a ``.pt2``."""
    device: int
    kind: str
    """Kind of the device in the plan."""
    operators: tuple[str, ...]
    """Names of the operators that the plan puts here, and of quantisers of their results."""
    copies: tuple[str, ...]
    """Names of the operators that are here as well: constants, copies of the plan, and those that
    widen quantised tensors."""
    weight_bytes: float
    """Bytes of the arrays that the file holds or refers to."""
    predicted_seconds: float | None
    """Seconds of the device in an iteration by the plan; None: the objective has none by device,
    or the device has several stages."""
    inputs: tuple[StageTensor, ...]
    outputs: tuple[StageTensor, ...]

    @property
    def nodes(self) -> int:
        """Operators in the file."""
        return len(self.operators) + len(self.copies)


@dataclass(frozen=True)
class Manifest:
    """Stages in an order in which they can run."""

    model: str
    """Path of the whole model, from the folder."""
    runtime: str
    """Program that runs the stages and the model: one of `RUNTIMES`."""
    arrays: str | None
    """File of arrays by name beside the manifest: the weights and the inputs that the user's own
    example has; None: there is none."""
    graph_hash: str
    """Digest of the plan's graph."""
    hardware: str
    objective: str
    predicted_throughput: float | None
    """Iterations a second by the plan."""
    dims: Mapping[str, int]
    """Sizes that the plan was made with."""
    stages: tuple[Stage, ...]
    outputs: tuple[StageTensor, ...]
    """Results of the model, each with the stage that makes it."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the document that `read_manifest` reads."""
        return {"format": FORMAT, **asdict(self)}


def owner_of(name: str, known: Container[str]) -> str | None:
    """Return the operator that a node is, or is a part of: a step of an LSTM, a node of an If's
    branch; None: it is none of those known."""
    while name not in known:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return name


def stage_devices(plan: Plan, manifest: Manifest) -> Int64[np.ndarray, "N"]:
    """Return [N] device on which the stages of a plan compute each node: the plan's, but for
    quantisers, which stay with what they quantise."""
    home = {name: stage.device for stage in manifest.stages for name in stage.operators}
    owners = (owner_of(str(name), home) for name in plan.nodes)
    devices = zip(owners, plan.device.tolist(), strict=True)
    return np.array([device if name is None else home[name] for name, device in devices], np.int64)


def read_manifest(folder: str | Path) -> Manifest:
    """Read the manifest of a folder that `export_stages` wrote.

    Raises:
        PlanError: there is none, it is of another version, or a field is missing or wrong.
    """
    path = Path(folder) / FILE
    try:
        document = read_json(path)
    except OSError as error:
        raise PlanError(
            f"{path}: cannot be read ({error.strerror}); a folder that go-rl export wrote has one"
        ) from error
    except ValueError as error:
        raise PlanError(f"{path}: is no JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        raise PlanError(f"{path}: format {shown(found)}; this version reads {FORMAT!r}")
    del document["format"]
    manifest = from_json(Manifest, document, str(path), PlanError, complete=True)
    _check_manifest(manifest, path)
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise a `PlanError` where the file of a stage is missing."""
    for number, stage in enumerate(manifest.stages):
        if not (folder / stage.file).is_file():
            raise PlanError(
                f"{folder}: {stage.file}, stage {number} of {FILE}, is not there; export the plan "
                "again"
            )


def _check_manifest(manifest: Manifest, path: Path) -> None:
    """Raise a `PlanError` for an unknown runtime, a file elsewhere, a sender that sends nothing."""
    if manifest.runtime not in RUNTIMES:
        raise PlanError(f"{path}: runtime {manifest.runtime!r} is none of {', '.join(RUNTIMES)}")
    for file in (manifest.arrays, *(stage.file for stage in manifest.stages)):
        if file is not None and Path(file).name != file:
            raise PlanError(f"{path}: file {file!r} is no name of a file beside the manifest")
    sent = [{tensor.name for tensor in stage.outputs} for stage in manifest.stages]
    for number, stage in enumerate(manifest.stages):
        for tensor in (*stage.inputs, *stage.outputs, *manifest.outputs):
            if not FROM_USER <= tensor.sender < len(sent):
                raise PlanError(
                    f"{path}: tensor {tensor.name!r} comes from stage {tensor.sender}, and there "
                    f"are {len(sent)}"
                )
        for tensor in stage.inputs:
            read = tensor.sender
            if read != FROM_USER and (read >= number or tensor.name not in sent[read]):
                raise PlanError(
                    f"{path}: stage {number} reads {tensor.name!r}, which stage {read} does not "
                    "send before"
                )
