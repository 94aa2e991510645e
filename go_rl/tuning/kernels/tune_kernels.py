"""`tune_kernels`: a model in, what was found and checked out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from go_rl.measure.kernels.collect import RECORDS
from go_rl.measure.kernels.settings import FLAGS
from go_rl.readers.jax.stages import JaxProgram
from go_rl.records import RecordStore
from go_rl.tuning.config import TuneConfig
from go_rl.tuning.kernels.alternate_check import check_alternately
from go_rl.tuning.kernels.budget import TuningBudget
from go_rl.tuning.kernels.fusions import FusionSpace
from go_rl.tuning.kernels.guides import Guide, guide_of
from go_rl.tuning.kernels.kernel_timer import KernelTimer, WorkerSource
from go_rl.tuning.kernels.kernel_tuner import KernelTuner, TuningState
from go_rl.tuning.kernels.outcome import Check, Tuned, write_tuned
from go_rl.tuning.progress import Watch, unwatched

FAST_MATH = "xla_cpu_enable_fast_math"


def tune_kernels(
    program: JaxProgram,
    folder: Path,
    config: TuneConfig,
    guide: Guide | None = None,
    report: Callable[[str], None] = lambda _: None,
    records: Path | None = None,
    watch: Watch = unwatched,
) -> Tuned:
    """Tune a model on this machine, and leave ``tuned.json`` and ``curve.csv`` in a folder.

    Args:
        program: of the model.
        folder: where these go.
        config: how.
        guide: None: the one that the configuration names.
        report: is told what is going on.
        records: folder of the records, which several runs may share: what they know is not measured
            again; None: the same folder.
        watch: is told of each improvement.

    Raises:
        TuningError: as `guide_of` and `KernelTuner.tune`.
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    guide = guide or guide_of(config)
    measuring = config.measuring
    records = records or folder
    with (
        RecordStore(records / RECORDS) as store,
        WorkerSource(program, measuring, records) as source,
    ):
        budget = TuningBudget(60.0 * config.minutes)
        timer = KernelTimer(store, source, measuring, program.graph.name, budget)
        space = FusionSpace(program.graph)
        tuned = tune_with(KernelTuner(space, guide, timer, budget, config, report, watch))
    write_tuned(tuned, config, folder)
    return tuned


def tune_with(tuner: KernelTuner) -> Tuned:
    """Return what a tuner finds, checked by a fresh measurement."""
    found = tuner.tune()
    minutes, space = tuner.budget.spent / 60.0, tuner.space
    settings = {p.hash: found.settings[p.hash] for p in found.best.parts
                if p.hash in found.settings}  # fmt: skip
    check = _check(tuner, found, settings)
    kept = check is not None and check.faster
    if kept and any(FAST_MATH in json.loads(s)[FLAGS] for s in settings.values()):
        found.notes.append("Some kernels run with fast math: their results differ in rounding")
    fusion = found.best if kept else space.default
    return Tuned(
        model=space.graph.name,
        guide=tuner.guide.name,
        target=tuner.config.target,
        fusion=fusion,
        settings=settings if kept else {},
        seconds=found.seconds if kept else found.plain,
        kept="tuned" if kept else "baseline",
        check=check,
        curve=tuple(found.curve),
        minutes=minutes,
        measured=tuner.timer.made,
        replayed=tuner.timer.replayed,
        candidates=len(found.tried),
        notes=tuple(dict.fromkeys(found.notes)),
    )


def _check(tuner: KernelTuner, found: TuningState, settings: dict[str, str]) -> Check | None:
    """Both times; None where there is nothing to check, or it failed."""
    default = tuner.space.default
    if found.best.key == default.key and not settings:
        found.notes.append("Nothing faster than the baseline was found")
        return None
    tuner.report("measuring the best and the baseline again")
    rounds = tuner.config.check_rounds
    check = check_alternately(tuner.timer, default, found.best, settings, rounds)
    if isinstance(check, str):
        found.notes.append(f"The baseline is kept: {check}")
        return None
    if not check.faster:
        found.notes.append("The baseline is kept: measured again, the best was not faster")
    return check
