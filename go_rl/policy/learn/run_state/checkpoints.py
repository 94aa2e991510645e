"""Checkpoints of a training run: Orbax, written aside and renamed, the last few kept."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint.options import MultiprocessingOptions

from go_rl.core import CheckpointError
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import TrainConfig
from go_rl.policy.learn.ppo import Learner

KEPT = 2
"""Checkpoints kept in a folder."""
VERSION = 1
"""Layout of a checkpoint."""


@dataclass(eq=False)
class TrainState:
    """All that a run needs to go on as if it had never stopped."""

    step: int
    """Updates done."""
    learner: Learner
    baseline: RunningBaseline
    best: Any
    """Parameters of the best validation so far."""
    best_score: float
    curve: list[tuple[int, float]]
    """(updates, score) of every validation."""


class Checkpoints:
    """The checkpoints of one folder."""

    def __init__(self, folder: str | Path) -> None:
        # Orbax logs each failure with several tracebacks, and raises it as well.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        self.folder = Path(folder).absolute()
        options = ocp.CheckpointManagerOptions(max_to_keep=KEPT, create=False, **_alone())
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._manager = ocp.CheckpointManager(self.folder, options=options)
        except OSError as error:
            raise CheckpointError(
                f"{self.folder}: cannot be used for checkpoints ({error})"
            ) from error

    @property
    def latest(self) -> int | None:
        """Updates done in the newest whole checkpoint; None when there is none."""
        return self._manager.latest_step()

    def save(self, state: TrainState, config: TrainConfig) -> None:
        """Write a checkpoint; one that was cut off is never seen.

        Raises:
            CheckpointError: it cannot be written; the run can be resumed from the one before.
        """
        meta = {
            "version": VERSION,
            "config": config.to_json(),
            "baseline": {"mean": state.baseline.mean, "variance": state.baseline.variance},
            "best_score": state.best_score,
            "curve": [list(point) for point in state.curve],
        }
        arrays = {"learner": state.learner._asdict(), "best": state.best}
        if jax.process_count() > 1:  # Orbax takes arrays of one process for parts of larger ones
            arrays = jax.device_get(arrays)
        args = ocp.args.Composite(
            arrays=ocp.args.StandardSave(arrays),  # pyright: ignore[reportCallIssue]
            meta=ocp.args.JsonSave(meta),  # pyright: ignore[reportCallIssue]
        )
        try:
            self._manager.save(state.step, args=args)
            self._manager.wait_until_finished()
        except Exception as error:  # Orbax raises whatever its storage layer raised
            raise CheckpointError(
                f"{self.folder}/{state.step}: cannot be written ({_why(error)}); once it can, the "
                "same command goes on from the checkpoint before, if there is one"
            ) from error

    def restore(self, like: TrainState, config: TrainConfig) -> TrainState:
        """Return the newest checkpoint; ``like`` gives the shapes.

        Raises:
            CheckpointError: damaged, of another version, or made by another configuration.
        """
        step = self.latest
        if step is None:
            raise CheckpointError(f"{self.folder}: holds no checkpoint")
        meta = self._meta(step)
        if meta.get("version") != VERSION:
            raise CheckpointError(
                f"{self.folder}/{step}: checkpoint of layout {meta.get('version')}, this version "
                f"reads {VERSION}; start in an empty folder"
            )
        if missing := {"config", "baseline", "best_score", "curve"} - set(meta):
            raise CheckpointError(
                f"{self.folder}/{step}: lacks {', '.join(sorted(missing))}; remove it to resume "
                "from the one before"
            )
        config.check_goes_on(self.folder, meta["config"], self.folder / str(step))
        if config.updates < step:
            raise CheckpointError(
                f"{self.folder}: holds {step} updates, more than updates={config.updates}; ask for "
                "as many or more, or start in an empty folder"
            )
        arrays = {"learner": like.learner._asdict(), "best": like.best}
        if jax.process_count() > 1:
            arrays = jax.device_get(arrays)
        shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, arrays)
        found = self._arrays(step, shapes)
        if not all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(found)):
            raise CheckpointError(f"{self.folder}/{step}: holds numbers that are not finite")
        baseline = RunningBaseline(like.baseline.decay, **meta["baseline"])
        return TrainState(
            step=step,
            learner=Learner(**found["learner"]),
            baseline=baseline,
            best=found["best"],
            best_score=float(meta["best_score"]),
            curve=[(int(n), float(score)) for n, score in meta["curve"]],
        )

    def close(self) -> None:
        """Release the folder."""
        with suppress(OSError, ValueError):  # of a save that failed, which was reported
            self._manager.close()

    def _meta(self, step: int) -> dict[str, Any]:
        restore: Any = ocp.args.JsonRestore()
        return self._read(step, ocp.args.Composite(meta=restore))["meta"]

    def _arrays(self, step: int, shapes: Any) -> Any:
        restore: Any = ocp.args.StandardRestore(shapes)  # pyright: ignore[reportCallIssue]
        found = self._read(step, ocp.args.Composite(arrays=restore))["arrays"]
        # Orbax binds arrays to their device; as free ones they go through the programs of new runs.
        return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), found)

    def _read(self, step: int, args: Any) -> Any:
        try:
            return self._manager.restore(step, args=args)
        except Exception as error:  # Orbax raises whatever its storage layer raised
            raise CheckpointError(
                f"{self.folder}/{step}: cannot be read ({type(error).__name__}); it may be "
                "truncated. Remove it to resume from the one before"
            ) from error


def _alone() -> dict[str, Any]:
    """Options by which Orbax does not wait for other processes of the run: one writes."""
    if jax.process_count() == 1:
        return {}
    index = jax.process_index()
    options = MultiprocessingOptions(
        primary_host=index, active_processes={index}, barrier_sync_key_prefix=f"process-{index}"
    )
    return {"multiprocessing_options": options}


def _why(error: Exception) -> str:
    """The message of the system, which the storage layer wraps in names of its own files."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if code := re.search(r"os_error_code='(\d+)'", str(error)):
        return os.strerror(int(code[1]))
    return f"{type(error).__name__}: {str(error)[:200]}"
