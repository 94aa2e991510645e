"""`calibrate` and `predict_this`: networks compiled by XLA on this machine's processor.

Which operators share a kernel is decided as XLA does (all that may fuse); each kernel's seconds are
those of the cost model that ships, corrected by kernels of other networks that `calibrate` timed
here. No TVM is needed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.predict import THIS
from go_rl.api.progress import Progress, ignore, of_total
from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, SEED, Range, check_ranges, check_tuples
from go_rl.core.files.paths import user_cache
from go_rl.core.files.run_lock import locked
from go_rl.core.hardware.processor import own_target, processor_name
from go_rl.costs.timing.config import CollectConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from jaxtyping import Float64

    from go_rl.api.predict import OperatorLatency, Prediction
    from go_rl.core import OpGraph
    from go_rl.costs.kernels.calibrated import CalibratedKernels, MemoryFloor
    from go_rl.costs.kernels.measure.chosen import ChosenKernel
    from go_rl.graphs.cutting.kernel_set import KernelSet
    from go_rl.graphs.readers.jax.stages import JaxProgram

NETWORKS = ("resnet18", "bert-mini", "gpt-6-layers", "vit-tiny", "mixer-s16", "conformer-s",
            "wavenet-2x18", "ncf")  # fmt: skip
"""Networks of the zoo whose kernels calibrate; none needs Keras."""
ENDING = ".npz"
"""Ending of the file that `calibrate` writes."""
NAMED = 6
"""Operators by which a kernel is named, at most."""
LAST_CONVOLUTIONS = (2, 4, None)
"""Numbers of a chain's last convolutions that are timed in one piece; None: all."""


@dataclass(frozen=True)
class CalibrateConfig:
    """Kernels to time, and for how long."""

    minutes: float = 20.0
    """Minutes after which no further kernel is begun."""
    kernels: int = 64
    """Number of kernels to time, chosen by k-means among those of the networks."""
    networks: tuple[str, ...] = NETWORKS
    """Networks of the zoo that the kernels are taken from."""
    core: int | None = None
    """Core that measures. Default: the last one of this process."""
    seed: int = 0
    """Random seed of the choice."""

    def __post_init__(self) -> None:
        check_tuples(self, "calibrate", TrainingError)
        check_ranges(
            self, "calibrate", TrainingError, minutes=Range(0, 24 * 60, above=True), kernels=COUNT,
            seed=SEED,
        )  # fmt: skip
        if not self.networks:
            raise TrainingError("calibrate: networks must name one at least")

    @property
    def measure(self) -> CollectConfig:
        """Timing of the kernels."""
        return CollectConfig(core=self.core)


@dataclass(frozen=True)
class Calibrated:
    """Result of `calibrate`."""

    path: Path
    kernels: int
    """Number of kernels timed."""
    error: float
    """Mean absolute percentage error on kernels left out in turn."""
    processor: str


def this_weights() -> Path:
    """Return where `calibrate` writes and `predict_this` reads by default: in the user's cache
    folder, by processor."""
    return user_cache() / f"this-{own_target()}.npz"


def calibrate(
    out: str | Path | None = None,
    config: CalibrateConfig | None = None,
    *,
    report: Progress = ignore,
) -> Calibrated:
    """Time some kernels on this machine, chosen to resemble all, and write corrections of the cost
    model that ships. What was timed before is not timed again.

    Args:
        out: ``.npz`` to be written, beside a folder of the records; None: `this_weights`.
        config: what is timed, and for how long.
        report: called with the kernels done, all of them and a sentence.

    Raises:
        TrainingError: the name of the file is another, or too few kernels have a time.
        RecordError: nothing can be measured here.
        WorkerError: the core cannot be had.
        ZooError: a network is unknown.
        CheckpointError: the file cannot be written.
        RunLockError: another run writes it.
    """
    from go_rl.costs.kernels.residuals import FEWEST

    config, path = config or CalibrateConfig(), Path(out or this_weights())
    if config.kernels < FEWEST:
        raise TrainingError(
            f"calibrate: {config.kernels} kernels are too few; {FEWEST} or more are needed"
        )
    records = records_beside(path)
    _check(config)
    with locked(path, file=True):
        return _calibrated(path, records, config, report)


def records_beside(path: Path) -> Path:
    """Return the folder of the records of a calibration that is written to a file.

    Raises:
        TrainingError: the file's name has another ending than `ENDING`.
    """
    if path.suffix != ENDING:
        raise TrainingError(
            f"calibrate: the name of {path} must end in {ENDING}; the records lie beside it, in a "
            "folder of the same name without the ending"
        )
    return path.with_suffix("")


def _calibrated(path: Path, records: Path, config: CalibrateConfig, report: Progress) -> Calibrated:
    """Time what is not timed yet, and write the corrections."""
    from go_rl.costs.kernels.calibrated import CalibratedKernels, MeasuredKernels
    from go_rl.costs.kernels.measure.chosen import cold_products, measure_chosen

    kernels, chosen, chains = _chosen(config, report)
    products = cold_products()
    asked = [*(each for _, each in products), *(chain for _, chain in chains), *chosen]
    seconds = measure_chosen(
        asked, records, config.measure, 60 * config.minutes,
        of_total(report, len(asked)),
    )  # fmt: skip
    timed = [k for k, each in enumerate(chosen) if each.hash in seconds]
    import numpy as np

    measured = MeasuredKernels(
        kernels.take(np.array(timed, np.int64)),
        np.array([seconds[chosen[k].hash] for k in timed]),
        processor_name(),
        tuple((parts, seconds[each.hash]) for parts, each in chains if each.hash in seconds),
        _memory_floor([(size, seconds[e.hash]) for size, e in products if e.hash in seconds]),
    )
    learned = CalibratedKernels.fit(measured)
    learned.save(path)
    count = len(timed) + len(measured.chains) + len(measured.memory.working_set)
    return Calibrated(path, count, learned.error, learned.processor)


def _memory_floor(products: Sequence[tuple[float, float]]) -> MemoryFloor:
    """Return the seconds that weights take from memory, by programs timed at rising sizes."""
    import numpy as np

    from go_rl.costs.kernels.calibrated import MemoryFloor

    size, seconds = np.array(products, np.float64).reshape(-1, 2).T
    return MemoryFloor(size.copy(), seconds / size)


def _weight_bytes(graph: OpGraph, nodes: Sequence[tuple[int, ...]]) -> Float64[np.ndarray, "K"]:
    """[K] bytes of weights that each kernel reads; a gather reads some rows only, which are not
    counted."""
    import numpy as np

    from go_rl.core import OpKind

    read = np.where(graph.kind == OpKind.GATHER, 0.0, graph.weight_bytes)
    return np.array([read[list(each)].sum() for each in nodes], np.float64)


def predict_this(
    model: str | Path | OpGraph,
    weights: str | Path | None = None,
    *,
    fusion: str = "chains",
    weight_positions: Collection[int] | None = None,
    **options: Any,
) -> Prediction:
    """Price a network as XLA compiles it for this machine, on one core.

    Args:
        model: anything that `go_rl.load` reads, or a graph.
        weights: file of `calibrate`; None: `this_weights`.
        fusion: ``none``: each operator by itself; else all that may share a kernel does.
        weight_positions: ``weights`` of `go_rl.load`.
        options: others of `go_rl.load`.

    Returns:
        Kernels in order; the bounds of the whole are the sums of theirs, as if all were off alike.

    Raises:
        TrainingError: nothing was calibrated here, or on another processor.
        ReadError: the model cannot be read.
        ProblemError: the model is a table of operators.
        OperatorError: the network computes in other types than float32.
        CheckpointError: the file is damaged.
    """
    from go_rl.api.load import graph_of
    from go_rl.api.predict import Prediction, is_table
    from go_rl.core import ProblemError
    from go_rl.costs.operators.launches.operator_view import check_float32
    from go_rl.graphs.cutting.compiled import compiled_network

    if is_table(model):
        raise ProblemError(
            f"{model}: a table of operators is of GPUs; give a network for --device this"
        )
    learned = _calibration(Path(weights or this_weights()))
    graph = graph_of(model, weights=weight_positions, **options)
    check_float32(graph)
    network = compiled_network(graph, fusion != "none")
    found = learned.network(network, _weight_bytes(graph, network.nodes))
    operators = tuple(
        _latency(graph, nodes, (mid, low, high), unlike)
        for nodes, mid, low, high, unlike in zip(
            network.nodes, *(1e3 * x for x in (found.seconds, found.low, found.high)),
            found.unlike.tolist(), strict=True,
        )
    )  # fmt: skip
    low, high = (1e3 * float(bound.sum()) for bound in (found.low, found.high))
    return Prediction(THIS, operators, low, high)


def _calibration(path: Path) -> CalibratedKernels:
    from go_rl.costs.kernels.calibrated import CalibratedKernels

    if not path.exists():
        raise TrainingError(
            f"{path}: nothing is known of this machine; run go-rl calibrate --device this"
        )
    learned = CalibratedKernels.load(path)
    here = processor_name()
    if learned.processor != here:
        raise TrainingError(
            f"{path}: calibrated to a processor {learned.processor}, and this machine's is {here}; "
            "run go-rl calibrate --device this"
        )
    return learned


def _latency(
    graph: OpGraph, nodes: tuple[int, ...], milliseconds: tuple[float, ...], unlike: bool
) -> OperatorLatency:
    """A kernel; its operator is the one with most FLOP."""
    from go_rl.api.predict import OperatorLatency

    heaviest = max(nodes, key=lambda node: graph.flops[node])
    kinds = list(dict.fromkeys(graph.op_type[node] for node in nodes))
    what = " + ".join(kinds[:NAMED]) + (" + …" if len(kinds) > NAMED else "")
    latency, low, high = map(float, milliseconds)
    return OperatorLatency(
        graph.op_type[heaviest], latency, low, high, unlike, what,
        nodes=tuple(str(graph.names[node]) for node in nodes),
    )  # fmt: skip


def _check(config: CalibrateConfig) -> None:
    """Refuse what would only be noticed when all networks are read: unknown ones, and a core that
    this process may not use.

    Raises:
        TrainingError: the core is another's.
        ZooError: a network is unknown.
    """
    from go_rl.graphs.zoo.models.inventory import zoo_model

    for name in config.networks:
        zoo_model(name)
    check_core(config.core)


def check_core(core: int | None) -> None:
    """Raise a `TrainingError` for a core that this process may not use; None: any."""
    if core is None or not hasattr(os, "sched_getaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    if core not in cores:
        raise TrainingError(
            f"calibrate: this process may use the cores {', '.join(map(str, cores))}, not "
            f"{core}; leave out --core, or name one of them"
        )


Chains = list[tuple["KernelSet", "ChosenKernel"]]


def _chosen(
    config: CalibrateConfig, report: Progress
) -> tuple[KernelSet, list[ChosenKernel], Chains]:
    """The kernels to be timed: of all networks, one for each cluster; and chains, with the kernels
    that each takes the place of."""
    import numpy as np

    from go_rl.costs.kernels.measure.chosen import ChosenKernel
    from go_rl.costs.kernels.measure.exported import zoo_program
    from go_rl.costs.kernels.measure.sampling import sample_kernels
    from go_rl.costs.kernels.residuals import compared_features
    from go_rl.costs.programs.learn.choose_programs import select_tasks
    from go_rl.graphs.cutting.kernel_set import join_kernels
    from go_rl.graphs.zoo.models.inventory import zoo_model

    sets, chosen, chains, known = [], [], [], set()
    sampling = replace(config.measure.sampling, kernels=10_000, fusions=(1.0,))
    for i, name in enumerate(config.networks):
        report(i, len(config.networks), f"reading {name}")
        program = zoo_program(zoo_model(name))
        chains += _chains(program, name)
        sampled = sample_kernels(program.graph, sampling, known)
        if sampled is None:
            continue
        known.update(sampled.kernels.hashes)
        sets.append(sampled.kernels)
        chosen += [
            ChosenKernel(program, nodes, hash_, name)
            for nodes, hash_ in zip(sampled.nodes, sampled.kernels.hashes, strict=True)
        ]
    kernels = join_kernels(sets)
    features = compared_features(kernels)
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 1e-6, spread, np.inf)
    count = min(config.kernels, len(chosen))
    which = select_tasks(scaled, np.arange(len(chosen)), count, config.seed)
    return kernels.take(which), [chosen[k] for k in which.tolist()], chains


def _chains(program: JaxProgram, name: str) -> Chains:
    """Chains of a network, whole and their ends alone."""
    from go_rl.costs.kernels.measure.chosen import ChosenKernel
    from go_rl.graphs.cutting.compiled import chain_kernel, default_leaders, library_chains

    graph = program.graph
    leader, found = default_leaders(graph), {}
    for most in LAST_CONVOLUTIONS:
        for chain in library_chains(graph, most):
            parts, nodes, hash_ = chain_kernel(graph, leader, chain)
            found[hash_] = (parts, ChosenKernel(program, nodes, hash_, name))
    return list(found.values())
