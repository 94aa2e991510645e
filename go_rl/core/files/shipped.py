"""Files that ship with the package, found by their names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from go_rl.core.errors import NAMED, GoRLError, ReadError, nearest


def shipped_or_given(
    source: str | Path,
    folder: Path,
    ending: str,
    what: str,
    error: type[GoRLError],
    prefix: str = "",
) -> Path:
    """Return the file that a path, or the name of one in ``folder`` without its ending, means.

    Args:
        source: path or name; what ends in ``ending`` or is a file is a path.
        folder: of the files that ship.
        ending: of all of them, such as ``.npz``.
        what: what such a file is, for messages.
        error: raised if there is no such name.
        prefix: of the names of such files, where others lie in the folder too.
    """
    path = Path(source)
    if path.name.endswith(ending) or path.is_file():
        return path
    known = sorted(each.name.removesuffix(ending) for each in folder.glob(f"{prefix}*{ending}"))
    if str(source) not in known and path.is_dir():
        held = " or ".join(str(each) for each in sorted(path.glob(f"*{ending}"))[:NAMED])
        advice = f"give {held}" if held else f"it holds no {ending} file"
        raise error(f"{source}: is a folder, no file of {what}; {advice}")
    if str(source) not in known:
        raise error(
            f"no {what} {str(source)!r}{nearest(str(source), known)} Give a {ending} file, or what "
            f"ships: {', '.join(known) or 'none'}"
        )
    return folder / f"{source}{ending}"


@contextmanager
def or_a_folder(source: str | Path, command: str) -> Iterator[None]:
    """Let the error about a data set that is neither a file nor ships say that a folder of a
    command would do, too."""
    try:
        yield
    except ReadError as error:
        if Path(source).suffix == ".npz" or Path(source).exists():
            raise
        raise ReadError(f"{error}; or a folder of {command}") from None
