"""Help without ``None``: by hand, and of every command."""

import re
from pathlib import Path

import pytest

import go_rl
from go_rl.cli.parsing.help_text import plain_help
from go_rl.cli.parsing.parse import PAGES
from go_rl.cli.table import COMMANDS


def test_none_becomes_blanks_of_the_same_width():
    box = (
        "│ --core {None}|INT   Default: the last. (default: None) │\n"
        "│ --side {None,a,b}   Which. (default:                   │\n"
        "│                     None)                              │\n"
        "│ --seed INT          Random seed. (default: 0)          │\n"
        "│ --models [STR]      Graphs. (default: )                │\n"
    )
    assert plain_help(box) == (
        "│ --core INT          Default: the last.                 │\n"
        "│ --side {a,b}        Which.                             │\n"
        "│ --seed INT          Random seed. (default: 0)          │\n"
        "│ --models [STR]      Graphs.                            │\n"
    )


@pytest.mark.parametrize("words", [each.words for each in COMMANDS])
def test_help_has_no_none_and_no_code(command, words):
    """Backticks around a name of the library send a user of the command line nowhere."""
    shown = command(*words.split(), "--help")
    assert shown.code == 0
    assert not re.search(r"\(default: *\)|\(default: None|\{None", shown.out)
    assert not re.findall(r"`(?:go_rl\.[\w.]+|[A-Z_]{4,})`", shown.out)


def test_the_pages_that_help_names_are_installed(command):
    shown = command("--help").out
    assert f"Pages named docs/NAME.md lie in {PAGES}" in " ".join(shown.split()).replace("- ", "-")
    package = Path(go_rl.__file__).parent
    named = {
        page
        for path in package.rglob("*.py")
        for page in re.findall(r"(?<![\w/])docs/([a-z]+\.md)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert named <= {each.name for each in PAGES.glob("*.md")}
