"""What reuses schedules in a network that is tuned through TVM."""

from __future__ import annotations

from go_rl.core.processor import own_target
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.weights_file import SHIPPED
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.tuning.loop.reuse.attention_reuse import AttentionReuse
from go_rl.tuning.tvm.backend import TvmBackend

WEIGHTS = SHIPPED / "transfer-1.npz"
"""Of the tuner that ships."""


def attention_reuse(backend: TvmBackend) -> AttentionReuse:
    """Return reuse among the operators of a network by the tuner that ships.

    Raises:
        CheckpointError: the weights cannot be read.
    """
    target = ProgramTarget(own_target(), backend.network.code.level)
    return AttentionReuse(backend.space, TransferTuner.load(WEIGHTS), target)
