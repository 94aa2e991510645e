"""Malformed inputs through the command line: one clear line, exit code 2, nothing on standard
output."""

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from runner.suite import Suite

from go_rl.cli.exit_codes import BAD_INPUT
from go_rl.cli.main import main

from ..malformed import CASES, Malformed

MOST_CHARACTERS = 900
"""Of a sentence that is read whole."""


def trial(index: int) -> str | None:
    """Case ``index``, in a folder of its own."""
    case = CASES[index]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in case.files.items():
            Path(name).write_bytes(content)
        code, out, err = command(case.arguments)
        made = sorted(set(os.listdir()) - set(case.files))
    wrong = [*answer_errors(case, code, out, err), *(f"{name} was written" for name in made)]
    return f"{case.name}: {'; '.join(wrong)}" if wrong else None


def command(arguments: tuple[str, ...]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of ``go-rl``."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stop:  # the parser's own way out
            code = stop.code if isinstance(stop.code, int) else 1
    return code, out.getvalue(), err.getvalue()


def answer_errors(case: Malformed, code: int, out: str, err: str) -> Iterator[str]:
    """What is wrong with an answer."""
    if code != BAD_INPUT:
        yield f"exit code {code}: {err.strip()[-200:]}"
    elif out:
        yield f"printed {out[:100]!r}"
    else:
        if not err.startswith("go-rl: ") or err.count("\n") != 1:
            yield f"no single line of its own: {err[:200]!r}"
        elif len(err) > MOST_CHARACTERS:
            yield f"{len(err)} characters"
        for word in case.words:
            if not any(each in err for each in word.split("|")):
                yield f"{word!r} is not in {err.strip()[:300]!r}"


SUITE = Suite(
    name="malformed-inputs",
    proves="a malformed file or command line gets one sentence that names what is wrong, exit code "
    "2, and leaves nothing behind",
    unit="inputs",
    count=len(CASES),
    trial=trial,
)
