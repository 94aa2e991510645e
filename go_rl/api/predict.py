"""`predict`: latency of networks and operators on a GPU of which only the data sheet is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

from go_rl.api.options import WeightsChoice, options_from
from go_rl.core import ElementType, OpGraph, ProblemError
from go_rl.core.errors import nearest
from go_rl.core.files.run_lock import exclusive
from go_rl.core.graph.retyped import retyped, wanted_type
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.operators import GPU_WEIGHTS

if TYPE_CHECKING:
    from go_rl.costs.devices import DataSheet
    from go_rl.costs.operators.launches import Launches
    from go_rl.costs.operators.predictor import OperatorPredictor
    from go_rl.costs.operators.tables import OperatorRows

EVERY_DEVICE, THIS = "all", "this"
"""Words in place of a device: all of the table; the machine at hand (`go_rl.calibrate`)."""
Fusion = Literal["chains", "none"]
FUSIONS: tuple[str, ...] = get_args(Fusion)
By = Literal["kernels", "programs"]
BY: tuple[str, ...] = get_args(By)
USUAL_LAUNCH_US = 26.0
"""Microseconds that an addition of few elements takes on the usual host (docs/predict.md)."""
HOST_BOUND = 0.9
"""Share of a network's time that the host needs, from which on a faster GPU brings nothing."""
TABLES = (".csv", ".csv.gz")
"""Endings of tables of operators; every other name is that of a model."""
WORDS = MappingProxyType(
    {"dims": "--dim", "inputs": "--input", "weight_positions": "--weight-args"}
)
"""Options of the command by those of `go_rl.load`, where their names differ."""


@dataclass(frozen=True)
class OperatorLatency:
    """One operator, run alone."""

    op: str
    latency_ms: float
    low_ms: float
    high_ms: float
    """Bounds of a 90 % interval."""
    unlike: bool
    """Whether its sizes or the device lie outside what was measured."""
    what: str = ""
    """Role of the kernel in a network; empty in a table."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Sizes of a network's operator by name; empty in a table."""
    nodes: tuple[str, ...] = ()
    """Nodes of the network's graph that it stands for; empty in a table."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the command's JSON."""
        found: dict[str, Any] = {
            "latency_ms": self.latency_ms,
            "low_ms": self.low_ms,
            "high_ms": self.high_ms,
            "unlike": self.unlike,
        }
        if self.what:
            found |= {"op": self.op, **dict(self.sizes), "what": self.what,
                      "nodes": list(self.nodes)}  # fmt: skip
        return found


@dataclass(frozen=True)
class UnpricedOperator:
    """Operator of a network for which the predictor has no price."""

    what: str
    """Operator and shapes."""
    calls: int
    """Calls in one run of the network."""
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the command's JSON."""
        return {"what": self.what, "calls": self.calls, "reason": self.reason}


@dataclass(frozen=True)
class Prediction:
    """Operators on a device."""

    device: str
    operators: tuple[OperatorLatency, ...]
    """Operators in the order of the table, or in that in which a network launches them."""
    low_ms: float | None = None
    high_ms: float | None = None
    """Bounds of a 90 % interval of a network's latency; None for a table."""
    end_to_end_ms: float | None = None
    """Latency of a network whose host issues launches ahead of the GPU; None for a table."""
    notes: tuple[str, ...] = ()
    """Assumptions about the device."""
    host_ms: float | None = None
    """Time that the host needs to issue all launches of a network; None for a table."""
    model_notes: tuple[str, ...] = ()
    """Assumptions about a network, such as the trips of a loop."""
    unpriced: tuple[UnpricedOperator, ...] = ()
    """Operators that are in no sum; only of programs of this machine."""

    @property
    def latency_ms(self) -> float:
        """Latency of a network from end to end, or the sum over the operators of a table."""
        return self.alone_ms if self.end_to_end_ms is None else self.end_to_end_ms

    @property
    def alone_ms(self) -> float:
        """Sum over the operators, each run alone."""
        return float(sum(each.latency_ms for each in self.operators))

    @property
    def unlike(self) -> int:
        """Number of operators that are unlike what was measured."""
        return sum(each.unlike for each in self.operators)

    @property
    def host_bound(self) -> bool:
        """Whether the host, not the device, takes nearly all of a network's time."""
        return self.host_ms is not None and self.host_ms >= HOST_BOUND * self.latency_ms

    def to_json(self) -> dict[str, Any]:
        """Return the command's JSON document."""
        found: dict[str, Any] = {
            "operators": [each.to_json() for each in self.operators],
            "latency_ms": self.latency_ms,
        }
        if self.low_ms is not None:
            found |= {"low_ms": self.low_ms, "high_ms": self.high_ms}
        if self.host_ms is not None:
            found |= {"host_ms": self.host_ms, "host_bound": self.host_bound}
        if self.unpriced:
            found["unpriced"] = [each.to_json() for each in self.unpriced]
        notes = [*self.notes, *self.model_notes]
        return found | ({"notes": notes} if notes else {})


@dataclass(frozen=True)
class PredictOptions:
    """Pricing of a network or of a table of operators."""

    fusion: Fusion | None = None
    """Fusion of a network: none is eager PyTorch, operator by operator; chains, the default, joins
    element-wise operators to their neighbours."""
    weights: WeightsChoice = None
    """Weights of go-rl train operators; for this machine those of go-rl calibrate, by programs also
    those of go-rl train programs. Default: those that ship; for this machine, those in the user's
    cache folder."""
    by: By = "kernels"
    """Compiler of a network on this machine: kernels are XLA's, programs TVM's."""
    candidates: str | None = None
    """Folder of go-rl tune programs, whose candidates a network has by programs. Default: TVM's
    default schedules."""
    launch_us: float | None = None
    """Microseconds that an addition of few elements takes on the GPU's host. Default: that of its
    data sheet, else of the usual host; for all devices 26."""
    element_type: str | None = None
    """Prices the network as if its floating-point tensors were of this type: bfloat16, float16,
    float8, int8, float32, or tf32, in which products of float32 tensors are computed. Default:
    those that it has; of a table float32."""
    fused_attention: bool = False
    """Prices attention of which the network has the pieces (product, softmax, product) as the one
    kernel that a library has for it, as PyTorch's scaled_dot_product_attention launches."""

    def __post_init__(self) -> None:
        if self.fusion not in (None, *FUSIONS):
            raise ProblemError(f"unknown fusion {self.fusion!r}{nearest(self.fusion, FUSIONS)} Use "
                               f"{' or '.join(FUSIONS)}")  # fmt: skip
        if self.by not in BY:
            raise ProblemError(f"unknown compiler {self.by!r}{nearest(self.by, BY)} Use "
                               f"{' or '.join(BY)}")  # fmt: skip
        if self.candidates is not None and self.by != "programs":
            raise ProblemError("candidates are of programs; give by='programs', or on the command "
                               "line --by programs, too")  # fmt: skip
        if self.fusion is not None and self.by == "programs":
            raise ProblemError("fusion is of kernels; of programs TVM decides it: leave it out")


def predict(
    model: str | Path | OpGraph,
    device: str | Path,
    *,
    dims: Mapping[str, int] | None = None,
    **options: Any,
) -> Prediction:
    """Price a network, or a table of operators, on one device.

    Args:
        model: anything that `go_rl.load` reads, a graph, or a table of operators: ``.csv`` or
            ``.csv.gz`` with the columns of docs/predict.md.
        device: name of the table of devices, or a JSON file with a data sheet; ``this``: the
            machine at hand, after `go_rl.calibrate` (`go_rl.api.this_device`).
        dims: sizes of symbolic dimensions, of ``zoo:`` networks ``batch`` and ``sequence``.
        options: fields of `PredictOptions`, and others of `go_rl.load`; its ``weights`` is
            ``weight_positions`` here.

    Raises:
        OperatorError: the table is malformed; the network launches nothing.
        ReadError: the model cannot be read.
        GraphError: it cannot be converted to ``element_type``.
        ZooError: the zoo has no such network.
        DeviceError: there is no such device, or its data sheet is wrong.
        CheckpointError: there are no such weights.
    """
    from go_rl.costs.devices import load_device, with_launch

    chosen, others = _split({"dims": dims, **options})
    if device == THIS:
        if chosen.launch_us is not None:
            raise ProblemError("launch_us is of a GPU's host; of this machine launches are timed")
        if chosen.element_type is not None:
            raise ProblemError(f"element_type is of GPUs; {THIS} machine's kernels are timed as "
                               "they are: give a model of that type")  # fmt: skip
        if chosen.fused_attention:
            raise ProblemError(f"fused_attention is of GPUs; on {THIS} machine attention is what "
                               "its compiler makes of it")  # fmt: skip
        if chosen.by == "programs":
            from go_rl.api.this_programs import predict_programs

            return predict_programs(model, chosen.weights, candidates=chosen.candidates, **others)
        from go_rl.api.this_device import predict_this

        fusion = chosen.fusion or "chains"
        return predict_this(model, chosen.weights, fusion=fusion, **others)
    _check_kernels(chosen)
    sheet = with_launch(load_device(device), chosen.launch_us)
    return _predicted(model, [sheet], chosen, others)[0]


def predict_everywhere(
    model: str | Path | OpGraph, *, dims: Mapping[str, int] | None = None, **options: Any
) -> tuple[Prediction, ...]:
    """Price a network or a table of operators on every device of the table, the fastest first, all
    on one host, so that the devices are compared.

    Args:
        model, dims, options: see `predict`; ``launch_us`` is that of the one host, by default
            `USUAL_LAUNCH_US`.

    Raises:
        GoRLError: of the classes that `predict` raises.
    """
    from go_rl.costs.devices import device_names, find_device, with_launch

    chosen, others = _split({"dims": dims, **options})
    _check_kernels(chosen)
    launch = USUAL_LAUNCH_US if chosen.launch_us is None else chosen.launch_us
    sheets = [with_launch(find_device(name), launch) for name in device_names()]
    found = _predicted(model, sheets, chosen, others)
    return tuple(sorted(found, key=lambda each: each.latency_ms))


@exclusive("out", file=True)
def train_operators(data: str | Path | Sequence[str | Path], out: str | Path) -> OperatorPredictor:
    """Learn from folders of measured operators; write weights for `predict`.

    Args:
        data: folder, or several, with a table ``OPERATOR.csv`` or ``.csv.gz`` for each operator:
            its sizes, ``latency_ms``, ``device`` and, where known, ``graph_ms`` and ``kernel``;
            folders within that are named after an element type hold operators in it.
        out: ``.npz`` to be written.

    Raises:
        TrainingError: there is no table, one is malformed, or there are too few rows or devices.
        DeviceError: a device is not in the table of devices.
        CheckpointError: the file cannot be written.
    """
    from go_rl.costs.operators.measured_tables import read_measured
    from go_rl.costs.operators.predictor import OperatorPredictor

    folders = (data,) if isinstance(data, str | Path) else data
    learned = OperatorPredictor.fit(read_measured(*folders))
    learned.save(Path(out))
    return learned


def is_table(model: object) -> TypeGuard[str | Path]:
    """Return whether a model is named as a table of operators."""
    return isinstance(model, str | Path) and str(model).lower().endswith(TABLES)


def _split(options: Mapping[str, Any]) -> tuple[PredictOptions, dict[str, Any]]:
    """The fields of `PredictOptions`, and what `go_rl.load` takes."""
    own = {f.name for f in fields(PredictOptions)}
    given = {name: value for name, value in options.items() if name in own}
    others = {name: value for name, value in options.items() if name not in own}
    return options_from(PredictOptions, given, "predict"), others


def _predicted(
    model: str | Path | OpGraph,
    sheets: Sequence[DataSheet],
    chosen: PredictOptions,
    others: Mapping[str, Any],
) -> tuple[Prediction, ...]:
    from go_rl.costs.operators.predictor import OperatorPredictor
    from go_rl.costs.operators.tables import read_operators

    weights = GPU_WEIGHTS if chosen.weights is None else chosen.weights
    if is_table(model):
        _refuse_options(model, others)
        if chosen.fused_attention:
            raise ProblemError(f"{model}: fused_attention is of networks; a table has rows of "
                               "attention")  # fmt: skip
        if chosen.fusion is not None:
            raise ProblemError(f"{model}: fusion is of networks; a table's rows stand alone")
        rows = read_operators(model)
        learned = OperatorPredictor.load(weights)
        element = None if chosen.element_type is None else wanted_type(chosen.element_type)
        return tuple(_table(rows, sheet, learned, element) for sheet in sheets)
    launches = _launches(model, chosen, others)
    learned = OperatorPredictor.load(weights)
    return tuple(_network(launches, sheet, learned) for sheet in sheets)


def _check_kernels(chosen: PredictOptions) -> None:
    if chosen.by != "kernels":
        raise ProblemError(
            f"by must be 'kernels', not {chosen.by!r}: these are priced for device {THIS!r} alone"
        )


def _refuse_options(table: str | Path, options: Mapping[str, Any]) -> None:
    given = [name for name, value in options.items() if value and value != "error"]
    if given:
        word = WORDS.get(given[0], f"--{given[0].replace('_', '-')}")
        raise ProblemError(f"{table}: a table of operators has its sizes and is no model; leave "
                           f"out {given[0]} ({word} on the command line)")  # fmt: skip


def _launches(
    model: str | Path | OpGraph, chosen: PredictOptions, options: Mapping[str, Any]
) -> Launches:
    from go_rl.api.load import graph_of
    from go_rl.costs.operators.launches import eager_launches, fused_launches

    given = dict(options)
    given["weights"] = given.pop("weight_positions", None)
    graph = graph_of(model, **given)
    if chosen.element_type is not None:
        graph = retyped(graph, chosen.element_type)
    eager = eager_launches(graph, fuses_attention=chosen.fused_attention)
    return eager if chosen.fusion == "none" else fused_launches(eager)


def _table(
    rows: OperatorRows, sheet: DataSheet, learned: OperatorPredictor, element: ElementType | None
) -> Prediction:
    import numpy as np

    from go_rl.costs.devices import assumed
    from go_rl.costs.operators.examples import OperatorInputs
    from go_rl.costs.operators.launches.launch_prices import scaled_types
    from go_rl.costs.operators.type_rates import type_rates

    types = np.full(len(rows), element or ElementType.FLOAT32, np.int8)
    rates = type_rates(types, dict(rates_of(sheet.name)))
    answer = learned.interval(OperatorInputs(rows, (sheet,), np.zeros(len(rows), np.int64), rates))
    each = zip(
        rows.op.tolist(), *(1e3 * v for v in answer[:3]), answer.unlike.tolist(), strict=True
    )
    priced = tuple(
        OperatorLatency(op, float(mid), float(low), float(high), unlike)
        for op, mid, low, high, unlike in each
    )
    notes = (*assumed(sheet), *scaled_types(types, sheet))
    return Prediction(sheet.name, priced, notes=notes)


def _network(launches: Launches, sheet: DataSheet, learned: OperatorPredictor) -> Prediction:

    from go_rl.costs.devices import assumed
    from go_rl.costs.operators.launches.launch_prices import (
        launch_prices,
        scaled_types,
        total_bounds,
    )
    from go_rl.costs.operators.launches.launch_replay import issued_ahead

    prices = launch_prices(launches, sheet, learned)
    parts = (prices.host, prices.start, prices.busy)
    total = issued_ahead(*parts, launches.before).seconds
    low, high = total_bounds(launches, prices, total)
    names = launches.graph.names
    columns = (prices.seconds, prices.low, prices.high)
    each = zip(launches.each, *(1e3 * v for v in columns), prices.unlike.tolist(), strict=True)
    priced = tuple(
        OperatorLatency(
            launch.op, float(mid), float(low_ms), float(high_ms), unlike, launch.what,
            tuple(launch.sizes.items()), tuple(str(names[n]) for n in launch.nodes),
        )
        for launch, mid, low_ms, high_ms, unlike in each
    )  # fmt: skip
    bounds = (1e3 * low, 1e3 * high, 1e3 * total)
    host_ms, notes = (
        1e3 * float(prices.host.sum()),
        (
            *map(str, launches.graph.meta.get("notes", ())),
            *scaled_types(launches.element_types, sheet),
        ),
    )
    return Prediction(sheet.name, priced, *bounds, assumed(sheet), host_ms, notes)
