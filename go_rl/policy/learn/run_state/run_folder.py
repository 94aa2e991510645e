"""`RunFolder`: checkpoints, log and weights of a run, which process 0 alone reads and writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np

from go_rl.graphs.zoo import ZOO_VERSION
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import CHECKPOINTS, WEIGHTS_FILE, TrainConfig
from go_rl.policy.learn.processes.group import Group
from go_rl.policy.learn.run_state.checkpoints import Checkpoints, TrainState
from go_rl.policy.learn.run_state.effort import EffortLog
from go_rl.policy.weights import Weights, save_weights
from go_rl.runtime.run_log import RunLog


class RunFolder:
    """The folder of a run. All processes call the same methods; what process 0 reads, or fails to
    read or write, reaches all of them, and no other needs to see its disk.

    Raises:
        CheckpointError: the folder cannot be used, or holds what does not fit.
        TrainingError: the log cannot be written; in other processes also the above.
    """

    def __init__(self, folder: Path, config: TrainConfig, group: Group) -> None:
        self.folder, self.config, self.group = folder, config, group
        self._checkpoints: Checkpoints | None = None
        self._log: RunLog | None = None
        self._effort: EffortLog | None = None
        self._since = time.process_time()
        group.on_first(self._open_checkpoints)

    def restored(self, like: TrainState) -> TrainState | None:
        """Return the newest checkpoint, the same in all processes; None when there is none."""
        return self.group.on_first(lambda: self._read(like))

    def open_log(self, step: int) -> None:
        """Go on with the log after an update."""
        self.group.on_first(lambda: self._open_log(step))

    def keep(self, state: TrainState, values: Mapping[str, float], samples: int, last: int) -> None:
        """Log an update and the ``samples`` that it took; write checkpoint and weights when it is
        time, or the ``last`` update."""
        elsewhere = sum(self.group.gather(self._lap)[1:], 0.0)
        self.group.on_first(lambda: self._write(state, values, last, samples, elsewhere))

    def close(self) -> None:
        """Let go of the files."""
        if self._log is not None:
            self._log.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def weights(self, state: TrainState) -> Weights:
        """Return the weights of the best validation so far."""
        params = state.best if state.curve else state.learner.params
        card = {
            "zoo": ZOO_VERSION,
            "training": asdict(self.config),
            "updates": state.step,
            "validation": [list(point) for point in state.curve],
            "best_validation": state.best_score if state.curve else None,
            "jax": jax.__version__,
            **({} if self._effort is None else self._effort.card()),
        }
        config = self.config
        agent = Agent(config.policy, jax.tree.map(np.asarray, params))
        return Weights(agent, config.name, card)

    def _open_checkpoints(self) -> None:
        self._checkpoints = Checkpoints(self.folder / CHECKPOINTS)
        self._effort = EffortLog(self.folder, self.config)

    def _lap(self) -> float:
        """Core-seconds of this process since the last call."""
        now = time.process_time()
        took, self._since = now - self._since, now
        return took

    def _open_log(self, step: int) -> None:
        self._log = RunLog(self.folder, step)

    def _read(self, like: TrainState) -> TrainState | None:
        checkpoints = self._checkpoints
        if checkpoints is None or checkpoints.latest is None:
            return None
        return checkpoints.restore(like, self.config)

    def _write(
        self,
        state: TrainState,
        values: Mapping[str, float],
        last: int,
        samples: int,
        elsewhere: float,
    ) -> None:
        assert self._log is not None
        assert self._effort is not None
        self._log.write(state.step, values)
        if state.step % self.config.checkpoint_every == 0 or state.step == last:
            self._save(state, samples, elsewhere)
        else:
            self._effort.count(samples, elsewhere)

    def _save(self, state: TrainState, samples: int, elsewhere: float) -> None:
        assert self._effort is not None
        assert self._checkpoints is not None
        self._effort.count(samples, elsewhere)
        self._checkpoints.save(state, self.config)
        save_weights(self.weights(state), self.folder / WEIGHTS_FILE)
