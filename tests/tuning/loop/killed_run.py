"""A run over recorded curves in a process of its own: ``python -m tests.tuning.loop.killed_run
JOURNAL``. It says when it begins, and at the end prints its state."""

import json
import sys
import time

import numpy as np

from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.schedulers import scheduler_of
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.pools.replay import ReplayBackend
from go_rl.tuning.tuners import inner_tuner
from tests.tuning.toy_pools import pool, pool_set

BEGUN = "begun"


class SlowReplay(ReplayBackend):
    """Takes some time, so that it can be killed in the midst of it."""

    def measure(self, operator, candidates):
        time.sleep(0.005)
        return super().measure(operator, candidates)


def main(path: str) -> None:
    """Tune, or go on."""
    rng = np.random.default_rng(5)
    pools = pool_set(*(
        pool(f"conv2d {k}", k + 1, 1e7, 1e-4 + 1e-2 * rng.random(60) ** 3, 0.125)
        for k in range(4)
    ))  # fmt: skip
    config = SlotConfig(seconds=20.0, batch=2, patience=40, seed=3)
    print(BEGUN, flush=True)
    state = tune_operators(
        SlowReplay(pools), scheduler_of("ansor"), inner_tuner("random"), config,
        journal=FileJournal(path, {"seed": 3}),
    )  # fmt: skip
    print(json.dumps(state.summary()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
