"""The model that a command reads, and the options that say how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from go_rl.core import OpGraph, Plan, PlanError, ReadError
from go_rl.core.plan import VALUE_SUFFIX

Dims = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=SIZE")]
Shapes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=2x3")]
Pins = Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME=DEVICE [NAME=DEVICE ...]]")]
Positions = Annotated[str | None, tyro.conf.arg(metavar="0,1|none")]


@dataclass(frozen=True)
class ModelArguments:
    """The model to read."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A file (ONNX, a .pt2 archive of PyTorch, a config.json of Hugging Face, GGUF, LiteRT, go_rl
    .npz, JSON of dnn-partitioning or Piper, text of PipeDream or DOPPLER, HLO text, StableHLO),
    module:name for a JAX function or a PyTorch module, which runs that module's code, or zoo:NAME
    (go-rl zoo list)."""
    dim: Dims = ()
    """Size of a symbolic dimension, such as batch=8; may be repeated."""
    input: Shapes = ()
    """Shape of an input of an ONNX or PyTorch model, such as x=1x224x224x3, or the value of one
    without dimensions, such as rate=16000; words:int64=8x128 names the element type of a PyTorch
    module's input; may be repeated."""
    trip_count: int | None = None
    """Trips of every loop whose count does not follow from the model. Default: such a model is
    refused."""
    weight_args: Positions = None
    """Positions of the arguments of a JAX function (parameters of HLO) that are weights. Default:
    argument 0, if it is a pytree of several arrays and there are others."""
    unknown: Literal["error", "bytes"] = "error"
    """Operators of unknown cost: refuse the model, or count their bytes only."""
    training: Literal["profile", "sgd", "adam"] | None = None
    """profile: expand a PipeDream profile into its forward and backward pass. sgd, adam: the
    training iteration of a PyTorch module, or of a loss in JAX, with that optimiser."""
    micro_batches: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Equal parts of the batch of a training iteration, whose gradients are accumulated for one
    update: what pipelines and data parallelism are made of. Default: the whole batch."""

    def __post_init__(self) -> None:
        # Malformed sizes are refused before anything is read.
        _ = self.dims, self.inputs, self.weights

    @property
    def dims(self) -> dict[str, int]:
        """The sizes by name."""
        return sizes_of(self.dim)

    @property
    def inputs(self) -> dict[str, tuple[int, ...] | int] | None:
        """The shapes by name; None: none are given."""
        return shapes_of(self.input)

    @property
    def weights(self) -> tuple[int, ...] | None:
        """The positions; None: by the default rule."""
        return positions_of(self.weight_args)


@contextmanager
def as_planned(source: ModelArguments, plan: Plan, path: str | Path) -> Iterator[ModelArguments]:
    """Yield the model with the sizes of a plan, where the user gives none.

    Raises:
        ReadError: the model, read in the block, does not take these sizes; names the plan's file.
        PlanError: in the block, a plan is for a model of other sizes; says the plan's own.
    """
    known = {} if source.input else plan.dims
    added = {name: size for name, size in known.items() if name not in source.dims}
    try:
        yield replace(source, dim=(*source.dim, *sizes_text(added)))
    except ReadError as error:
        if not any(repr(name) in str(error) for name in added):
            raise
        sizes = ", ".join(sizes_text(plan.dims))
        raise ReadError(f"{path}: dims {sizes} do not fit the model: {error}") from error
    except PlanError as error:
        asked = source.dims
        same = not source.input and all(asked.get(n, size) == size for n, size in known.items())
        if same or not plan.dims:
            raise
        said = str(error).removeprefix(f"{path}: ")
        sizes = ", ".join(sizes_text(plan.dims))
        raise PlanError(f"{path}: {said}; the plan was made with {sizes}") from error


@contextmanager
def naming_plan(path: str | Path) -> Iterator[None]:
    """Let an error about a plan begin with the plan's file."""
    try:
        yield
    except PlanError as error:
        if str(error).startswith(f"{path}: "):
            raise
        raise PlanError(f"{path}: {error}") from error


def sizes_text(dims: Mapping[str, int]) -> tuple[str, ...]:
    """Return sizes by name as the command line takes them."""
    return tuple(f"{name}={size}" for name, size in dims.items())


def sizes_of(dims: Dims) -> dict[str, int]:
    """Return sizes of symbolic dimensions by name.

    Raises:
        ReadError: one is malformed, or a dimension has two sizes.
    """
    found: dict[str, int] = {}
    for text in (text for given in dims for text in given.split(",")):
        name, size = _size(text)
        if found.setdefault(name, size) != size:
            raise ReadError(f"--dim {text}: {name} has two sizes, {found[name]} and {size}")
    return found


def shapes_of(inputs: Shapes) -> dict[str, tuple[int, ...] | int] | None:
    """Return shapes, or values, of inputs by name; None: none are given.

    Raises:
        ReadError: one is malformed.
    """
    return dict(map(_shape, inputs)) or None


def positions_of(weight_args: str | None) -> tuple[int, ...] | None:
    """Return the positions of arguments that are weights; None: by the default rule.

    Raises:
        ReadError: they are malformed.
    """
    if weight_args is None:
        return None
    given = [] if weight_args == "none" else weight_args.split(",")
    found: list[int] = []
    for text in given:
        ends = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", text)
        first, last = map(int, (ends[1], ends[2] or ends[1])) if ends else (1, 0)
        if first > last:
            raise ReadError(
                f"--weight-args {weight_args}: must be positions and ranges of them with commas "
                "between, such as 0,2 or 0-99, or none"
            )
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def _shape(text: str) -> tuple[str, tuple[int, ...] | int]:
    name, _, sizes = text.rpartition("=")
    if name and sizes == "0":
        return name, 0  # no size of a shape, but a value
    parts = sizes.split("x") if sizes else []
    if not name or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise ReadError(
            f"--input {text}: must be NAME=SIZExSIZE with sizes >= 1, such as x=1x224x224x3, or "
            "NAME=VALUE for an input without dimensions"
        )
    return name, tuple(map(int, parts))


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    least = 0 if name.endswith(VALUE_SUFFIX) else 1
    if not name or not size.isdecimal() or int(size) < least:
        raise ReadError(f"--dim {text}: must be NAME=SIZE with a size >= 1, such as batch=8")
    return name, int(size)


def training_of(source: ModelArguments) -> bool | Literal["sgd", "adam"]:
    """Return the training option as the API has it."""
    return source.training == "profile" if source.training in (None, "profile") else source.training


def load_options(source: ModelArguments) -> dict[str, Any]:
    """Return the options as `go_rl.load` has them."""
    return {
        "dims": source.dims,
        "unknown": source.unknown,
        "training": training_of(source),
        "inputs": source.inputs,
        "trip_count": source.trip_count,
        "weights": source.weights,
        "micro_batches": source.micro_batches,
    }


def read(source: ModelArguments) -> OpGraph:
    """Read the model that the user named."""
    from go_rl.api.load import load

    return load(source.model, **load_options(source))
