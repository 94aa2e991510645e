"""The ``go-rl`` command: typed configuration in, files and tables out."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
from collections.abc import Sequence

from go_rl.cli.exit_codes import OK
from go_rl.cli.stopping import end_at_once, handling, raise_by_signal


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``go-rl`` with these arguments (the process's own by default); returns the exit code.

    What takes time to import is imported here, where Ctrl-C is a sentence.
    """
    prepare_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    with handling({signal.SIGTERM: end_at_once, signal.SIGINT: end_at_once}):
        from go_rl.cli.guard import guarded

        with handling({signal.SIGTERM: raise_by_signal, signal.SIGINT: raise_by_signal}):
            return guarded(lambda: _run(argv))


def _run(argv: list[str]) -> int:
    if argv == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"go-rl {version('go_rl')}\n")
        return OK
    from go_rl.cli.parsing.parse import naming_flags, parse
    from go_rl.core.installed import check_installed

    check_installed()
    _keep_compiled_programs()
    with naming_flags(argv):
        command, options = parse(argv)
        return command.load().run(options)


def _keep_compiled_programs() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless another one is named."""
    from go_rl.core.files.paths import user_cache

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache() / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")


PLAIN = {
    "µ": "u", "×": "x", "–": "-", "—": "-", "…": "...", "·": "-", "•": "*", "‘": "'", "’": "'",
    **dict.fromkeys("─━═╌╍", "-"),
    **dict.fromkeys("│┃║", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┡┩┳┻╇┴╋", "+"),
}  # fmt: skip
"""Replacements of characters that an encoding lacks; ``?`` stands for all others."""
HANDLER = "go_rl.plain"
"""Name of the error handler that does so."""


def plain_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return `PLAIN` characters for those that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = "".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end])
    return text, error.end


def prepare_streams() -> None:
    """Let standard output and error take any text, and what is closed go nowhere.

    A closed stream (``>&-``) would be None, and the next file opened would take its descriptor.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor: this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    codecs.register_error(HANDLER, plain_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)
