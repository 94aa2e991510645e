"""`SavedKind`: a kind of files of something learned or gathered: a tree of arrays, a manifest.

The manifest says its ``format``, whatever else tells versions apart (``required``), the
configuration, and where the numbers come from.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core.errors import CheckpointError, GoRLError, PolicyError, TrainingError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.core.printable import reason
from go_rl.runtime.array_file import (
    check_digest,
    check_parameters,
    parameter_tree,
    read_parameters,
    write_parameters,
)

FORMAT = "format"
UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, PolicyError,
         TrainingError)  # fmt: skip
"""Raised by whoever takes a malformed manifest apart."""


@dataclass(frozen=True, eq=False)
class SavedFile:
    """A file that was read: its kind and version are right, its arrays are those written."""

    path: Path
    manifest: Mapping[str, Any]
    arrays: dict[str, np.ndarray]

    def tree(self, expected: Any) -> Any:
        """Return the tree of arrays.

        Args:
            expected: tree of the same shapes.

        Raises:
            CheckpointError: a shape or type differs, or a number is not finite.
        """
        check_parameters(self.path, self.arrays, expected)
        return parameter_tree(self.arrays)


@dataclass(frozen=True)
class SavedKind:
    """A kind of files."""

    format: str
    what: str
    """The content in words, for messages: ``kernel cost weights``."""
    required: Mapping[str, Any] = field(default_factory=dict)
    """Fields, as JSON has them, that the manifest of a file must have to be read: versions, names
    of features."""
    advice: str = "train it again"
    """For who has a file of another version."""
    shipped: Path | None = None
    """Folder of the files that ship with the package; None: none do."""
    prefix: str = ""
    """Start of their names, where others lie in the folder too."""
    error: type[GoRLError] = CheckpointError
    """Error that a file raises if it cannot be read."""

    def write(self, path: str | Path, tree: Any, manifest: Mapping[str, Any]) -> None:
        """Write a file; a reader never sees half of it.

        Args:
            path: of the file.
            tree: arrays by name, or trees of them.
            manifest: JSON, beside ``format`` and `required`.

        Raises:
            CheckpointError: the file cannot be written.
        """
        head = {FORMAT: self.format, **self.required}
        write_parameters(Path(path), tree, {**head, **manifest})

    def holds(self, path: Path) -> bool:
        """Return whether a file of arrays is of this kind.

        Raises:
            CheckpointError: it is no file of arrays, or damaged.
        """
        return read_parameters(path)[0].get(FORMAT) == self.format

    @contextmanager
    def opened(self, source: str | Path) -> Iterator[SavedFile]:
        """Read a file, by path or by the name of one that ships; what a malformed manifest raises
        in the body becomes `error`.

        Raises:
            GoRLError: `error`: there is no such file, it is damaged, or of another kind or version.
        """
        path = Path(source)
        if self.shipped is not None:
            path = shipped_or_given(
                source, self.shipped, ".npz", self.what, self.error, self.prefix
            )
        try:
            yield self._read(path)
        except CheckpointError as error:
            raise self.error(str(error)) from error
        except UNFIT as error:
            raise self.error(
                f"{path}: is damaged, or its manifest does not fit this version ({reason(error)})"
            ) from error

    def _read(self, path: Path) -> SavedFile:
        manifest, arrays = read_parameters(path)
        if (theirs := manifest.get(FORMAT)) != self.format:
            raise CheckpointError(
                f"{path}: is no file of {self.what}: its format is {reprlib.repr(theirs)}, not "
                f"{self.format!r}"
            )
        for name, ours in self.required.items():
            theirs = manifest.get(name)
            if theirs != ours:
                raise CheckpointError(
                    f"{path}: its {name} is {reprlib.repr(theirs)}, and this version of go_rl "
                    f"reads {reprlib.repr(ours)}; {self.advice}"
                )
        check_digest(path, manifest, arrays)
        return SavedFile(path, manifest, arrays)
