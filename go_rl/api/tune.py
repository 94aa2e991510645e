"""`tune_kernels`: the fastest fusion and flags of a model that measuring finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.tuning.config import TuneConfig

if TYPE_CHECKING:
    from go_rl.tuning.outcome import Tuned as Tuned


def tune_kernels(
    model: str,
    folder: str | Path,
    config: TuneConfig | None = None,
    *,
    records: str | Path | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Tuned:
    """Tune a model on this machine; leave ``tuned.json`` and the curve in a folder.

    Args:
        model: ``zoo:NAME``, or ``module:function`` for a JAX function.
        folder: where these go.
        config: what is tuned, and for how long.
        records: folder of the records, which several runs may share: what they know is not measured
            again; None: the same folder.
        report: called with what is going on.

    Raises:
        TuningError: the model cannot be tuned, or there are no weights for the learned guide.
        ZooError, ReadError: there is no such model.
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    from go_rl.report.tuning_curve import save_tuning_curve
    from go_rl.tuning import tune_kernels as tuning
    from go_rl.tuning.compilable import load_program
    from go_rl.tuning.guides import guide_of

    folder, config = Path(folder), config or TuneConfig()
    guide = guide_of(config)
    program = load_program(model)
    folder.mkdir(parents=True, exist_ok=True)
    kept = None if records is None else Path(records)
    tuned = tuning.tune_kernels(program, folder, config, guide, report, kept)
    save_tuning_curve(tuned, folder / "curve")
    return tuned
