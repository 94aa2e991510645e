"""What reuses schedules in a network that is tuned through TVM."""

from __future__ import annotations

from collections.abc import Callable

from go_rl.core.processor import own_target
from go_rl.measure.programs.data import ProgramTarget
from go_rl.predictors.programs.transfer.tuner import TransferTuner
from go_rl.predictors.programs.weights_file import SHIPPED
from go_rl.tuning.reuse.attention_reuse import AttentionReuse
from go_rl.tuning.reuse.schedule_reuse import ProgramSpace

WEIGHTS = SHIPPED / "transfer-1.npz"
"""Of the tuner that ships."""


def attention_reuse(space_of: Callable[[int], ProgramSpace], level: str) -> AttentionReuse:
    """Return reuse by the tuner that ships.

    Args:
        space_of: spaces of operators by their number.
        level: of x86-64 that code is generated for.

    Raises:
        CheckpointError: the weights cannot be read.
    """
    target = ProgramTarget(own_target(), level)
    return AttentionReuse(space_of, TransferTuner.load(WEIGHTS), target)
