"""Folders for results in which pipes, folders, links and foreign files have the names of ours."""

import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from cli.profile_documents import chain_document
from runner.suite import Suite

from go_rl.core import Plan
from go_rl.report.plan_folder import FILES

from .malformed_inputs import command

ARGUMENTS = ("optimize", "m.json", "--hardware", "ring2", "--method", "greedy", "--samples", "1",
             "--out", "p")  # fmt: skip


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as each:
        each.bind(str(path))


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


IN_THE_WAY: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": _socket,
    "a link to itself": _loop,
}
HARMLESS: dict[str, Callable[[Path], None]] = {
    "a foreign file": lambda path: path.with_name("notes.txt").write_text("mine") and None,
    "an older file": lambda path: path.write_text("old") and None,
    "what a killed run left": lambda path: path.with_name(".go_rl_plan_x.scratch").mkdir(),
}
CASES = [*product(FILES, IN_THE_WAY), *product(FILES[:4], HARMLESS)]


def trial(index: int) -> str | None:
    """Case ``index``, in a folder of its own."""
    name, what = CASES[index]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("m.json").write_text(json.dumps(chain_document(5)))
        Path("p").mkdir()
        (IN_THE_WAY | HARMLESS)[what](Path("p", name))
        wrong = list(_refusal(name) if what in IN_THE_WAY else _success(what))
    return f"{what} beside or as {name}: {'; '.join(wrong)}" if wrong else None


def _refusal(name: str) -> Iterator[str]:
    code, out, err = command(ARGUMENTS)
    if (code, out) != (2, "") or err.count("\n") != 1 or f"p/{name}: cannot be written" not in err:
        yield f"exit code {code}: {err[-200:]!r}"
    if os.listdir("p") != [name] or sorted(os.listdir()) != ["m.json", "p"]:
        yield f"left {os.listdir()} and {os.listdir('p')}"


def _success(what: str) -> Iterator[str]:
    code, _, err = command(ARGUMENTS)
    if code:
        yield f"exit code {code}: {err[-200:]!r}"
        return
    Plan.load("p/plan.json")
    kept = {"notes.txt"} if what == "a foreign file" else set()
    if foreign := set(os.listdir("p")) - set(FILES) ^ kept:
        yield f"{foreign} are there, or not"
    if sorted(os.listdir()) != ["m.json", "p"]:
        yield f"left {os.listdir()}"


SUITE = Suite(
    name="hostile-folders",
    proves="where a pipe, a folder, a socket or a looping link has the name of a file of a plan, "
    "the search is refused before it begins and nothing is touched; what is harmless stays, and "
    "what a killed run left goes",
    unit="folders",
    count=len(CASES),
    trial=trial,
)
