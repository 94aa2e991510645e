"""``python -m experiments FOLDER.NAME [options]`` runs a script; without a name all are listed."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from inspect import getmembers, isabstract, isclass
from pathlib import Path

from experiments.experiment import Script
from go_rl.core.errors import nearest

HERE = Path(__file__).parent
SCRIPT = re.compile(r"^class \w+\(.*\b(Script|Experiment)\):", re.M)
"""Options of a script, in its file."""


def names() -> list[str]:
    """Return the names of all scripts, such as ``partition.solver_speed``."""
    paths = [
        path for path in sorted(HERE.glob("*/**/*.py")) if SCRIPT.search(path.read_text("utf-8"))
    ]
    return [".".join(path.relative_to(HERE).with_suffix("").parts) for path in paths]


def script_of(name: str) -> type[Script]:
    """Return the options of a script: the class of its module that is a `Script`.

    Raises:
        SystemExit: there is no such script; the nearest name is told.
    """
    if name not in names():
        sys.exit(f"no script is called {name!r}{nearest(name, names())}")
    module = import_module(f"experiments.{name}")
    own = [
        each
        for _, each in getmembers(module, isclass)
        if issubclass(each, Script) and each.__module__ == module.__name__ and not isabstract(each)
    ]
    return own[0]


def main() -> None:
    """Run the script that the command line names."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, *names(), sep="\n")
        return
    name = sys.argv.pop(1)
    script_of(name).main(f"python -m experiments {name}")


if __name__ == "__main__":
    main()
