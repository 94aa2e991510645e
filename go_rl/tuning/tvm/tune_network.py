"""`tune_network`: a network in; tuned, compiled, compared with the untuned one and written out.

The folder's journal holds each batch of trials: whoever is killed, or stops with Ctrl-C, loses the
batch that was being measured, and the same command goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from go_rl.core.hardware.processor import own_target
from go_rl.core.printable import counted
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import (
    LoadedPrograms,
    load_program_weights,
    this_machine_weights,
)
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.weights_file import SHIPPED
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.runtime.records import RecordStore
from go_rl.tuning.config import TREES, TuneProgramsConfig, TuningError
from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.nouns import MakeInnerTuner
from go_rl.tuning.loop.progress import Watch, unwatched
from go_rl.tuning.loop.result_folder import JOURNAL, records_of
from go_rl.tuning.loop.reuse.attention_reuse import AttentionReuse
from go_rl.tuning.loop.schedulers.registry import WITH_BELIEF, live_scheduler
from go_rl.tuning.loop.schedulers.scheduler import Scheduler
from go_rl.tuning.loop.slot_loop import NothingWorksError
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.time_budget import TimeBudget
from go_rl.tuning.loop.trial_records import known_trials
from go_rl.tuning.loop.tuning_run import run_tuning
from go_rl.tuning.tuners.program_guide import ProgramGuide
from go_rl.tuning.tuners.registry import inner_tuner
from go_rl.tuning.tvm.backend import TvmBackend
from go_rl.tuning.tvm.codegen import code_target
from go_rl.tuning.tvm.finish import Finish
from go_rl.tuning.tvm.lowering import LoweredNetwork, lower
from go_rl.tuning.tvm.models.model import TunableNetwork
from go_rl.tuning.tvm.tuned_network import TunedNetwork, write_tuned_network

TRANSFER_WEIGHTS = SHIPPED / "transfer-1.npz"
"""Weights of the tuner by which untuned operators reuse candidates."""
TRANSFER = "transfer"
GUIDES = {"cdmpp": ProgramPredictor, "code-trees": CodeTrees, TRANSFER: TransferTuner}
"""Predictors of programs by the name of a guide."""


def tune_network(
    network: TunableNetwork,
    folder: Path,
    config: TuneProgramsConfig,
    *,
    records: str | Path | None = None,
    watch: Watch = unwatched,
    report: Callable[[str], None] = lambda _: None,
) -> TunedNetwork:
    """Tune a network's operators on this machine.

    Args:
        network: with its weights.
        folder: of everything that is written; a run that began here goes on.
        config: who tunes what, for how long.
        records: store of trials, a folder, a file or a URL, which several runs may share; None: the
            folder's own. A run that begins knows what it has.
        watch: is told how far tuning is.
        report: is told what is done before and after.

    Raises:
        MissingDependencyError: TVM, a C compiler, or what the scheduler needs is not installed.
        RecordError: the store cannot be read or written.
        TuningError: the network cannot be tuned, a name is unknown, or the folder is of another
            run.
        WorkerError: the core cannot be had.
    """
    scheduler, make_tuner = deciders(config)
    budget = TimeBudget(60.0 * config.minutes)
    report(f"importing {network.name}")
    pace = min(config.timing.pace_seconds, budget.pace)
    quick = replace(config, timing=replace(config.timing, pace_seconds=pace))
    lowered = lower(network, code_target(config.target, config.cores))
    store_at, pace_at = records_of(records, folder)
    with RecordStore(store_at) as store, TvmBackend(lowered, quick, pace_at) as backend:
        journal = FileJournal(folder / JOURNAL, _about(lowered, backend, config))
        backend.start(store, budget.preparing, report)
        known = known_trials(store, backend.target, backend.operators)
        before = sum(len(batch.trials) for batch in journal.batches())
        resumed = before or sum(map(len, known.values()))
        slots = _slots(config, budget, len(backend.operators))
        notes: list[str] = []
        if backend.operators:
            report(f"tuning {counted(len(backend.operators), 'operator')}")
            with suppress(NothingWorksError):  # told of each operator
                notes += run_tuning(
                    backend, scheduler, make_tuner, slots, journal, known=known, watch=watch,
                    reuse=_reuse(backend) if config.only_heavy < 1 else None,
                )  # fmt: skip
        finish = Finish(network, lowered, backend, journal, slots, budget, report)
        tuned = finish.tuned(folder, config, resumed, notes)
    write_tuned_network(tuned, config, folder)
    return tuned


def _reuse(backend: TvmBackend) -> AttentionReuse:
    """Return reuse among a network's operators by the transfer tuner that ships."""
    target = ProgramTarget(own_target(), backend.network.code.level)
    return AttentionReuse(backend.space, TransferTuner.load(TRANSFER_WEIGHTS), target)


def _slots(config: TuneProgramsConfig, budget: TimeBudget, operators: int) -> SlotConfig:
    """Slots of what is left of the minutes; a slot is as long as if all of them were left."""
    whole = SlotConfig(
        seconds=budget.seconds, trials=config.trials, batch=config.batch, seed=config.seed,
        heavy=config.only_heavy, first_round=config.first_round,
    )  # fmt: skip
    slot = whole.slot_seconds(max(operators, 1))
    return replace(whole, seconds=budget.tuning(), slot=slot)


def deciders(config: TuneProgramsConfig) -> tuple[Scheduler, MakeInnerTuner]:
    """Return the scheduler of slots, and the factory of inner tuners.

    Raises:
        CheckpointError: the weights of the guide cannot be read.
        MissingDependencyError: what the scheduler's belief or the guide needs is not installed.
        TuningError: a name is unknown; the scheduler sees recorded curves only; the weights are of
            another guide, or there are none.
    """
    scheduler = live_scheduler(config.scheduler, config.belief)
    if config.guide == TREES:
        return scheduler, inner_tuner(config.tuner)
    target = ProgramTarget(own_target(), code_target(config.target, config.cores).level)
    return scheduler, ProgramGuide(_predictor(config), target).tuners(config.tuner)


def _predictor(config: TuneProgramsConfig) -> LoadedPrograms:
    """The predictor of a guide."""
    source = config.weights or (TRANSFER_WEIGHTS if config.guide == TRANSFER else "")
    if not source and not this_machine_weights().exists():
        raise TuningError(
            f"tune: {this_machine_weights()}: nothing is known of this machine's programs; run "
            "go-rl calibrate --device this --programs, or give --weights: a file of go-rl train "
            "programs, or programs-5-cdmpp, learned on other processors"
        )
    found = load_program_weights(source or this_machine_weights())
    if not isinstance(found, GUIDES[config.guide]):
        theirs = next((name for name, kind in GUIDES.items() if isinstance(found, kind)), None)
        if theirs is None:
            raise TuningError(
                f"tune: {source or this_machine_weights()} reads machine code, and a guide ranks "
                "candidates before they are compiled; give weights of another model: "
                "programs-5-cdmpp, or a file of go-rl calibrate --device this --programs --weights "
                "programs-5-cdmpp --out FILE"
            )
        raise TuningError(
            f"tune: {source or this_machine_weights()} holds weights of {theirs}: set guide to "
            f"{theirs!r}, not {config.guide!r}"
        )
    return found


def _about(
    lowered: LoweredNetwork, backend: TvmBackend, config: TuneProgramsConfig
) -> dict[str, object]:
    """Facts that identify the run of a journal."""
    belief = {"belief": config.belief} if config.scheduler in WITH_BELIEF else {}
    heavy = {"only_heavy": config.only_heavy} if config.only_heavy < 1 else {}
    chosen = {"guide": config.guide, "weights": config.weights}
    guide = chosen if config.guide != TREES else {}
    return {
        "network": lowered.name, "target": backend.target, "seed": config.seed, **heavy,
        "scheduler": config.scheduler, **belief, "tuner": config.tuner, **guide,
        "operators": [[x.workload, x.repeats] for x in backend.operators],
    }  # fmt: skip
