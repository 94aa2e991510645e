"""The ``go-rl`` command: typed configuration in, files and tables out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version

from go_rl.cli.exit_codes import OK
from go_rl.cli.guard import guarded
from go_rl.cli.parsing.parse import parse
from go_rl.cli.stopping import handling, raise_by_signal
from go_rl.cli.streams import prepare_streams
from go_rl.core.files.user_cache import user_cache
from go_rl.core.installed import check_installed


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``go-rl`` with these arguments (the process's own by default); returns the exit code."""
    prepare_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    with handling({signal.SIGTERM: raise_by_signal, signal.SIGINT: raise_by_signal}):
        return guarded(lambda: _run(argv))


def _run(argv: list[str]) -> int:
    if argv == ["--version"]:
        sys.stdout.write(f"go-rl {version('go_rl')}\n")
        return OK
    check_installed()
    _keep_compiled_programs()
    command, options = parse(argv)
    return command.load().run(options)


def _keep_compiled_programs() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless another one is named."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache() / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
