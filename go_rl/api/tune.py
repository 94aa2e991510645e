"""`tune_kernels`, `tune_programs`: the fastest kernels of a model that measuring finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core.files.run_lock import exclusive
from go_rl.graphs.readers.model_options import ModelOptions
from go_rl.tuning.config import TuneConfig, TuneProgramsConfig, TuningConfig
from go_rl.tuning.loop.progress import TuningProgress, Watch, logged, unwatched

if TYPE_CHECKING:
    from go_rl.tuning.tvm.tuned_network import TunedNetwork as TunedNetwork
    from go_rl.tuning.xla.outcome import Tuned as Tuned

__all__ = [
    "ModelOptions",
    "TuningConfig",
    "TuningProgress",
    "Watch",
    "summary",
    "tune_kernels",
    "tune_programs",
    "unwatched",
]


@exclusive("folder")
def tune_kernels(
    model: str,
    folder: str | Path,
    config: TuneConfig | None = None,
    *,
    records: str | Path | None = None,
    watch: Watch = unwatched,
    report: Callable[[str], None] = lambda _: None,
) -> Tuned:
    """Tune a model on this machine; leave ``tuned.json`` and the curve in a folder.

    Args:
        model: ``zoo:NAME``, or ``module:function`` for a JAX function.
        folder: where these go; a run that was stopped there goes on.
        config: what is tuned, and for how long.
        records: store of measurements, a folder, a file or a database URL, which several runs may
            share: what it knows is not measured again, and takes the time that it took then; None:
            the folder's own.
        watch: called with how far tuning is.
        report: called with what is going on.

    Raises:
        MissingDependencyError: what a scheduler or an inner tuner needs is not installed.
        TuningError: the model cannot be tuned, a name is unknown, there are no weights for the
            learned guide, or the folder is of another run.
        ZooError, ReadError: there is no such model.
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    from go_rl.report.tuning_curve import save_tuning_curve
    from go_rl.tuning.loop.schedulers.registry import live_scheduler
    from go_rl.tuning.xla import tune_kernels as tuning
    from go_rl.tuning.xla.compilable import load_program
    from go_rl.tuning.xla.guided_tuner import check_tuner
    from go_rl.tuning.xla.guides import guide_of

    folder, config = Path(folder), config or TuneConfig()
    live_scheduler(config.scheduler, config.belief)  # names are checked before anything is read
    check_tuner(config.tuner)
    guide = guide_of(config)
    program = load_program(model)
    folder.mkdir(parents=True, exist_ok=True)
    with logged(folder, watch) as both:
        tuned = tuning.tune_kernels(program, folder, config, guide, report, records, both)
    save_tuning_curve(tuned, folder / "curve")
    return tuned


@exclusive("folder")
def tune_programs(
    model: str | Path,
    folder: str | Path,
    config: TuneProgramsConfig | None = None,
    *,
    options: ModelOptions | None = None,
    records: str | Path | None = None,
    watch: Watch = unwatched,
    report: Callable[[str], None] = lambda _: None,
) -> TunedNetwork:
    """Tune the operators of a network through TVM; leave the compiled network, its candidates and
    the curve in a folder. A run that was stopped there goes on.

    Args:
        model: a float32 network: a file (ONNX with its weights, HLO text, StableHLO),
            ``module:function`` for a JAX function, or ``zoo:NAME``. Weights without numbers get
            random ones.
        folder: where everything goes.
        config: who tunes what, for how long.
        options: how it is read. ``dims``: sizes of symbolic dimensions. ``inputs``: shapes of
            inputs of an ONNX model by name, or the value of one of one element. ``weights``:
            positions of the arguments of a JAX function, or of the parameters of HLO, that are
            weights; None: of a function argument 0, if it is a pytree of several arrays and there
            are others.
        records: store of trials, a folder, a file or a database URL, which several runs may share;
            None: the folder's own.
        watch: called with how far tuning is.
        report: called with what is done before and after.

    Raises:
        MissingDependencyError: TVM, a C compiler or what a scheduler needs is not installed.
        ReadError: the model cannot be read, or a dimension has no size.
        RecordError: the records cannot be read or written.
        TuningError: the network cannot be tuned, or a name is unknown.
        WorkerError: the core cannot be had.
        ZooError: the zoo has no such network.
    """
    from go_rl.costs.timing.tvm_calls import import_tvm
    from go_rl.report.tuning_curve import save_network_curve
    from go_rl.tuning.tvm.codegen import code_target
    from go_rl.tuning.tvm.models.read_model import read_model
    from go_rl.tuning.tvm.tune_network import deciders, tune_network

    folder, config = Path(folder), config or TuneProgramsConfig()
    deciders(config)  # names are checked before anything is read
    code_target(config.target, config.cores)
    import_tvm()
    network = read_model(model, options, config.seed)
    folder.mkdir(parents=True, exist_ok=True)
    with logged(folder, watch) as both:
        tuned = tune_network(network, folder, config, records=records, watch=both, report=report)
    save_network_curve(tuned, folder / "curve")
    return tuned


def summary(tuned: Tuned | TunedNetwork, config: TuningConfig) -> dict[str, Any]:
    """Return what ``tuned.json`` holds.

    Args:
        tuned: what `tune_kernels` or `tune_programs` returned.
        config: that it was given.
    """
    from go_rl.tuning.tvm.tuned_network import summary_document
    from go_rl.tuning.xla.outcome import Tuned, tuned_document

    if isinstance(tuned, Tuned):
        return tuned_document(tuned, config)
    return summary_document(tuned, config)
