"""`predict_programs`: networks compiled by TVM on this machine's processor, function by function.

The paper's route (CDMPP, section 5.5): the network is lowered to functions of TIR, each is a tensor
program under a schedule, a predictor prices it once, and a replayer executes the calls in order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.calibrate_programs import STARTS_WITH
from go_rl.api.predict import THIS
from go_rl.core import ProblemError, TrainingError

if TYPE_CHECKING:
    from go_rl.api.predict import Prediction
    from go_rl.core import OpGraph
    from go_rl.costs.programs.learn.code_trees import ProgramTrees
    from go_rl.costs.programs.learn.predictor import ProgramPredictor
    from go_rl.costs.programs.network_latency import NetworkLatency, NetworkPrograms

READ = ("dims", "inputs")
"""Options of `go_rl.load` that say how a network is compiled, too."""


def predict_programs(
    model: str | Path | OpGraph,
    weights: str | Path | None = None,
    *,
    candidates: str | Path | None = None,
    weight_positions: Collection[int] | None = None,
    **options: Any,
) -> Prediction:
    """Price a network as TVM compiles it for one core of this machine.

    Args:
        model: a float32 network that `go_rl.tune_programs` reads.
        weights: of a predictor of programs, by path or name; None: those of ``go-rl calibrate
            --programs``.
        candidates: folder of `go_rl.tune_programs`, whose candidates functions have; None: all have
            TVM's default schedule, the loops as they are.
        weight_positions: positions of arguments that are weights.
        options: ``dims`` and ``inputs`` of `go_rl.load`.

    Returns:
        Functions in the order of their first call, each call by itself; those without a price are
        named with the reason. The bounds of the whole are those of all functions at once, as if all
        predictions were off alike. On a processor that trees did not learn a note says so, and
        every function counts as unlike (`MeanOfProcessors`).

    Raises:
        CheckpointError: there are no such weights, or the file is of something else.
        MissingDependencyError: TVM is not installed.
        ProblemError: the model is a graph, or an option is of another way of pricing.
        TrainingError: nothing was calibrated here; the weights know no seconds, or no function.
        TuningError: the network cannot be compiled, or the folder is none of tuning.
    """
    from go_rl.costs.programs.learn.code_trees import MachineTrees
    from go_rl.costs.programs.learn.unlearned_processor import MeanOfProcessors, for_device
    from go_rl.costs.programs.network_latency import check_priced, network_latency
    from go_rl.costs.timing.tvm_calls import import_tvm
    from go_rl.graphs.readers.model_options import ModelOptions
    from go_rl.tuning.tvm.codegen import code_target
    from go_rl.tuning.tvm.lowering import lower
    from go_rl.tuning.tvm.models.read_model import read_model
    from go_rl.tuning.tvm.network_programs import network_programs
    from go_rl.tuning.tvm.tuned_network import read_candidates

    given = _checked(model, options)
    predictor = _predictor(weights)
    level, found = ("", {}) if candidates is None else read_candidates(Path(candidates))
    import_tvm()
    code = code_target(level)
    asked = ModelOptions.of(
        options.get("dims"), inputs=options.get("inputs"), weights=weight_positions
    )
    read = read_model(given, asked)
    reads_code = isinstance(predictor, MachineTrees)
    network = network_programs(lower(read, code), found, compiled=reads_code)
    pricing = for_device(predictor, network.target.device)
    prices = network_latency(network, pricing)
    check_priced(network, prices)
    found = _prediction(network, prices, candidates)
    if not isinstance(pricing, MeanOfProcessors):
        return found
    return replace(found, notes=(*found.notes, _unlearned(network.target.device, pricing.trees)))


def _checked(model: str | Path | OpGraph, options: Mapping[str, Any]) -> str | Path:
    from go_rl.api.predict import is_table

    if not isinstance(model, str | Path) or is_table(model):
        raise ProblemError(
            "by programs: a graph or a table of operators does not say what it computes, so TVM "
            "cannot compile it; give a network: an ONNX file, StableHLO, module:function or "
            "zoo:NAME"
        )
    for name, value in options.items():
        if name not in READ and value and value != "error":
            raise ProblemError(f"by programs: {name!r} cannot be set; TVM compiles inference alone")
    return model


def _predictor(weights: str | Path | None) -> ProgramPredictor | ProgramTrees:
    from go_rl.costs.programs.learn.program_weights import (
        predictor_of_seconds,
        shipped_devices,
        this_machine_weights,
    )

    path = this_machine_weights()
    if weights is None and not path.exists():
        raise TrainingError(
            f"{path}: nothing is known of this machine's programs; run go-rl "
            "calibrate --device this --programs, or give --weights: a file of go-rl train "
            f"programs, or {STARTS_WITH}, learned on {', '.join(shipped_devices(STARTS_WITH))}"
        )
    return predictor_of_seconds(weights or path)


def _unlearned(device: str, trees: ProgramTrees) -> str:
    """Sentence about prices on a processor that was not learned."""
    known, learned = trees.devices, trees.devices[0]
    if len(known) > 1:
        learned = f"the geometric mean of the {len(known)} learned, with an interval around all"
    return (
        f"{device} was not learned; priced as {learned}; run go-rl calibrate --device this "
        "--programs"
    )


def _prediction(
    network: NetworkPrograms, prices: NetworkLatency, candidates: str | Path | None
) -> Prediction:
    from go_rl.api.predict import OperatorLatency, Prediction, UnpricedOperator
    from go_rl.costs.programs.network_latency import TUNED

    programs, calls = network.programs, network.called.tolist()
    counts = {f: calls.count(f) for f in dict.fromkeys(calls)}
    operators = tuple(
        OperatorLatency(
            f"{programs[f].schedule} schedule", 1e3 * float(prices.seconds[f]),
            1e3 * float(prices.low[f]), 1e3 * float(prices.high[f]), bool(prices.unlike[f]),
            programs[f].name,
        )
        for f in calls
        if not prices.reasons[f]
    )  # fmt: skip
    unpriced = tuple(
        UnpricedOperator(programs[f].name, count, prices.reasons[f])
        for f, count in counts.items()
        if prices.reasons[f]
    )
    tuned = sum(programs[f].schedule == TUNED for f in counts)
    where = "TVM's default schedules, the loops as they are"
    if candidates is not None:
        own = f"{tuned} of {len(counts)} functions"
        where = f"{own} have candidates of {candidates}, the others {where}"
    total, low, high = (1e3 * each for each in prices.total)
    return Prediction(
        THIS, operators, low, high, total, (f"Schedules: {where}.",), unpriced=unpriced
    )
