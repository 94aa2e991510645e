"""What the command line accepts: one frozen dataclass a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import tyro

from go_rl.api.options import OptimizeOptions, PartitionOptions
from go_rl.cli.options.step_configuration import StepLearner, StepTraining
from go_rl.core import GoRLError, Objective, ReadError
from go_rl.core.errors import nearest
from go_rl.measure.config import CollectConfig
from go_rl.policy.names import SHIPPED_NAMES
from go_rl.train.config import FineTuneConfig, RingTrainConfig

T = TypeVar("T")
Dims = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=SIZE")]
Shapes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=2x3")]


@dataclass(frozen=True)
class ModelArguments:
    """The model to read."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A file (ONNX, go_rl .npz, dnn-partitioning JSON, PipeDream text, HLO or StableHLO text),
    module:function for a JAX function, or zoo:NAME (go-rl zoo list)."""
    dim: Dims = ()
    """Size of a symbolic dimension, such as batch=8; may be repeated."""
    input: Shapes = ()
    """Shape of an input of an ONNX model, such as x=1x224x224x3; may be repeated."""
    trip_count: int | None = None
    """Trips of every loop whose count does not follow from the model."""
    weight_args: Annotated[str | None, tyro.conf.arg(metavar="0,1|none")] = None
    """Positions of the arguments of a JAX function (parameters of HLO) that are weights. Default:
    argument 0, if it is a pytree of several arrays and there are others."""
    unknown: Literal["error", "bytes"] = "error"
    """Operators of unknown cost: refuse the model, or count their bytes only."""
    training: bool = False
    """Expand a PipeDream profile into its forward and backward pass."""

    def __post_init__(self) -> None:
        # Malformed sizes are refused before anything is read.
        _ = self.dims, self.inputs, self.weights

    @property
    def dims(self) -> dict[str, int]:
        """The sizes by name."""
        return dict(_size(text) for given in self.dim for text in given.split(","))

    @property
    def inputs(self) -> dict[str, tuple[int, ...]] | None:
        """The shapes by name; None: none are given."""
        return dict(map(_shape, self.input)) or None

    @property
    def weights(self) -> tuple[int, ...] | None:
        """The positions; None: by the default rule."""
        if self.weight_args is None:
            return None
        given = [] if self.weight_args == "none" else self.weight_args.split(",")
        if not all(text.strip().isdecimal() for text in given):
            raise ReadError(
                f"--weight-args {self.weight_args}: must be positions with commas between, such as "
                "0,2, or none"
            )
        return tuple(int(text) for text in given)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition("=")
    parts = sizes.split("x") if sizes else []
    if not name or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise ReadError(
            f"--input {text}: must be NAME=SIZExSIZE with sizes >= 1, such as x=1x224x224x3"
        )
    return name, tuple(map(int, parts))


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal() or int(size) < 1:
        raise ReadError(f"--dim {text}: must be NAME=SIZE with a size >= 1, such as batch=8")
    return name, int(size)


@dataclass(frozen=True)
class Partition:
    """Place every operator of a model on a chip."""

    source: ModelArguments
    hardware: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Hardware: a preset (go-rl hardware list), a JSON file, or "file" for the model file's own.
    Default: ring36; for max-load and latency the model file's own hardware, if it names any."""
    search: PartitionOptions = field(default_factory=PartitionOptions)
    memory: Literal["auto", "on", "off"] = "auto"
    """Must weights and live tensors fit? auto: yes, except for a profile on foreign hardware."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, tables and figures. Default: out/MODEL, and none with --json."""
    json: bool = False
    """Print one JSON document, table and plan, and nothing else."""

    @property
    def memory_choice(self) -> bool | None:
        """``memory`` as `go_rl.partition` takes it."""
        return {"auto": None, "on": True, "off": False}[self.memory]


@dataclass(frozen=True)
class Optimize:
    """Decide where, in which order and in which kernels a model runs on connected devices."""

    source: ModelArguments
    hardware: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Hardware with fully connected devices: a preset (go-rl hardware list) or a JSON file.
    Default: p100x4."""
    tasks: Annotated[str | None, tyro.conf.arg(metavar="TASK,TASK")] = None
    """Some of placement,schedule,fusion. Default: all that make sense."""
    search: OptimizeOptions = field(default_factory=OptimizeOptions)
    memory: Literal["on", "off"] = "on"
    """Must weights and live tensors fit?"""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, timeline, tables and figures. Default: out/MODEL, none with --json."""
    json: bool = False
    """Print one JSON document, table and plan, and nothing else."""


@dataclass(frozen=True)
class TrainStep:
    """Train a policy for placement, schedule and fusion on the zoo; resumes where it stopped."""

    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the run: checkpoints, log.jsonl, tensorboard, weights.npz."""
    training: Annotated[StepTraining, tyro.conf.arg(name="")] = field(default_factory=StepTraining)
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Read the whole configuration from a file instead; DIR/config.json is one."""


@dataclass(frozen=True)
class Train:
    """Train a policy on the model zoo; an interrupted run goes on where it stopped."""

    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the run: checkpoints, log.jsonl, tensorboard, weights.npz."""
    training: RingTrainConfig = field(default_factory=RingTrainConfig)
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Read the whole configuration from a file instead (docs/policy.md); DIR/config.json is one."""
    workers: Literal["local", "ray"] = "local"
    """Who solves and prices samples: this process, or Ray workers (pip install 'go_rl[ray]')."""


@dataclass(frozen=True)
class FineTune:
    """Go on training a policy on one model; keep the best plan and the weights."""

    source: ModelArguments
    hardware: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Hardware: a preset (go-rl hardware list) or a JSON file. Default: ring36."""
    rules: Literal["default", "strict", "replicate", "relay"] = "default"
    """Rule set of the ring; strict: the paper's own."""
    memory: Literal["auto", "on", "off"] = "auto"
    """Must weights and live tensors fit? auto: yes, except for a profile on foreign hardware."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    samples: int = 200
    """Plans to learn from."""
    weights: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")] = SHIPPED_NAMES[Objective.RING]
    """Where to start: shipped weights, or a file that go-rl train or finetune wrote."""
    task: Literal["order", "placement"] = "order"
    """order: scores, cut by dynamic programming; placement: chips, through the solver."""
    seed: int = 0
    """Random seed."""
    learner: FineTuneConfig = field(default_factory=FineTuneConfig)
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, tables, figures and weights.npz. Default: out/MODEL."""


@dataclass(frozen=True)
class FineTuneStep:
    """Go on training a step policy on one model; keep the best plan and the weights."""

    source: ModelArguments
    hardware: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Hardware with fully connected devices: a preset (go-rl hardware list) or a JSON file.
    Default: p100x4."""
    tasks: Annotated[str | None, tyro.conf.arg(metavar="TASK,TASK")] = None
    """Some of placement,schedule,fusion. Default: all that make sense."""
    memory: Literal["on", "off"] = "on"
    """Must weights and live tensors fit?"""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    samples: int = 200
    """Plans to learn from."""
    weights: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")] = SHIPPED_NAMES[Objective.MAKESPAN]
    """Where to start: shipped weights, or a file that go-rl train-step or finetune-step wrote."""
    seed: int = 0
    """Random seed."""
    learner: StepLearner = field(default_factory=StepLearner)
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, timeline, tables, figures and weights.npz. Default: out/MODEL."""


@dataclass(frozen=True)
class Evaluate:
    """Compare methods on graphs at equal samples and equal seconds; tables and curves."""

    graphs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="GRAPHS")]
    """zoo:NAME, a split of the zoo such as zoo:test (go-rl zoo list), or model files."""
    hardware: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME|FILE ...")] = ("ring36",)
    """Hardware, one or more: presets with ring links, or JSON files."""
    rules: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RULES ...")] = ("strict",)
    """Rule sets, one or more of default, strict, replicate, relay."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = (
        "greedy", "random", "annealing", "policy",
    )  # fmt: skip
    """Methods of go-rl partition, and the learned ones (docs/policy.md)."""
    weights: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Weights of the policy methods and finetuned ones; default: those that ship."""
    samples: int | None = None
    """Priced plans of each run; 200 if no limit is given."""
    seconds: float | None = None
    """Seconds of each run, compilation left out."""
    seeds: int = 3
    """Runs of each method on each problem; bands need at least 2."""
    bound_seconds: float = 0.0
    """CP-SAT's time to raise the proven bound of each problem, beside the methods."""
    memory: Literal["auto", "on", "off"] = "auto"
    """Must weights and live tensors fit? auto: yes, except for a profile on foreign hardware."""
    thresholds: tuple[float, ...] = (1.6, 1.7, 1.8)
    """Improvements over the compiler heuristic whose samples are counted."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "out/evaluate"
    """Folder for runs, tables and curves; what is finished there is not run again."""


@dataclass(frozen=True)
class CheckOptions:
    """Judge a plan independently; exit code 0: accepted, 1: rejected."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json."""
    source: ModelArguments
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class GraphOptions:
    """Show or save a model's operator graph."""

    source: ModelArguments
    save: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Write the graph to this .npz file, which every command reads back quickly."""
    json: bool = False
    """Print one JSON document with nodes and edges, and nothing else."""


@dataclass(frozen=True)
class HardwareList:
    """List the hardware presets."""

    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class HardwareShow:
    """Show one hardware: its chips and links."""

    hardware: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME|FILE")]
    """A preset such as ring36 or a100x8, or a JSON file."""
    json: bool = False
    """Print the JSON document that --hardware reads back, and nothing else."""


@dataclass(frozen=True)
class ZooList:
    """List the frozen graphs of the model zoo."""

    split: Literal["train", "validation", "test", "extra", "training-form"] | None = None
    """Only this part of the split (docs/zoo.md)."""
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class ZooShow:
    """Show one graph of the model zoo."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """A graph such as bert-base."""
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class Measure:
    """Compile and time kernels of the zoo's models on this machine; goes on where it stopped."""

    what: Annotated[tyro.conf.Positional[Literal["kernels"]], tyro.conf.arg(metavar="kernels")]
    """Kernels."""
    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the records: records.sqlite, kernels/MODEL.npz (docs/kernels.md)."""
    models: tuple[str, ...] = ()
    """Graphs of the zoo, with spaces between; none: all of them."""
    measure: CollectConfig = field(default_factory=CollectConfig)
    """What is measured, and how."""


def to_json(configuration: Any) -> dict[str, Any]:
    """Return any of these dataclasses as a JSON object."""
    return asdict(configuration)


def from_json(kind: type[T], document: Any, where: str = "configuration") -> T:
    """Read what `to_json` wrote.

    Raises:
        GoRLError: a field is unknown or missing, or holds what it cannot; the field is named.
    """
    if not isinstance(document, Mapping):
        raise GoRLError(f"{where}: must be a JSON object, not {document!r}")
    known = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in document.items():
        if name not in known:
            raise GoRLError(f"{where}: unknown field {name!r}{nearest(name, known)}")
        if is_dataclass(types[name]):
            value = from_json(types[name], value, f"{where}: {name}")  # pyright: ignore[reportArgumentType]
        _check_scalar(value, types[name], f"{where}: {name}")
        values[name] = _frozen(value)
    try:
        return kind(**values)
    except TypeError as error:
        raise GoRLError(f"{where}: {error}") from error


SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
    NoneType: ((NoneType,), "null"),
}
"""What JSON may hold for a field of each plain type."""


def _check_scalar(value: Any, hint: Any, where: str) -> None:
    """Refuse what is of none of the plain types of a field; other fields check their own."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if any(kind not in SCALARS for kind in kinds):
        return
    for kind in kinds:
        if isinstance(value, SCALARS[kind][0]) and (kind is bool or not isinstance(value, bool)):
            return
    wanted = " or ".join(SCALARS[kind][1] for kind in kinds)
    raise GoRLError(f"{where}: must be {wanted}, not {value!r}")


def _frozen(value: Any) -> Any:
    return tuple(_frozen(x) for x in value) if isinstance(value, list) else value
