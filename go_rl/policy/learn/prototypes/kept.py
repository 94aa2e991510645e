"""`Kept`: where a stage of a run stands, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar, cast

from flax import serialization

from go_rl.core import CheckpointError
from go_rl.core.files.whole_file import whole_file

T = TypeVar("T")
EVERY = 10
"""Updates between two writings."""


class Kept:
    """File with a tree of arrays and numbers; a reader never sees a half-written one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: object) -> None:
        """Write a tree of arrays and numbers."""
        with whole_file(self.path) as file:
            file.write(serialization.to_bytes(state))

    def load(self, like: T) -> T:
        """Return what was written, or ``like`` where nothing was; ``like`` gives the structure.

        Raises:
            CheckpointError: the file is damaged, or of another configuration.
        """
        if not self.path.exists():
            return like
        try:
            return cast(T, serialization.from_bytes(like, self.path.read_bytes()))
        except Exception as error:  # whatever a damaged file makes msgpack raise
            raise CheckpointError(
                f"{self.path}: is damaged or of another configuration ({type(error).__name__}); "
                "delete it, and the stage begins anew"
            ) from error

    def remove(self) -> None:
        """Delete the file: the stage has ended."""
        self.path.unlink(missing_ok=True)
