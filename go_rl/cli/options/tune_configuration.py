"""What ``go-rl tune`` accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from go_rl.tuning.config import TuneConfig


@dataclass(frozen=True)
class Tune:
    """Search the fastest fusion and flags of a model's kernels, verified by measuring here."""

    what: Annotated[tyro.conf.Positional[Literal["kernels"]], tyro.conf.arg(metavar="kernels")]
    """Kernels."""
    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """zoo:NAME (go-rl zoo list), or module:function for a JAX function."""
    tune: TuneConfig = field(default_factory=TuneConfig)
    """What is tuned, for how long, and who says what is worth measuring."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of tuned.json, the curve and the records; what these know is not measured again.
    Default: out/tune-MODEL."""
    records: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of the records, which several runs may share; default: that of --out."""
