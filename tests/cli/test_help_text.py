"""Help without ``None``: by hand, and of every command."""

import re
from pathlib import Path

import pytest

import go_rl
from go_rl.cli.parsing.parse import PAGES
from go_rl.cli.table import COMMANDS


@pytest.mark.parametrize("words", [each.words for each in COMMANDS])
def test_help_has_no_none_and_no_code(command, words):
    """Backticks around a name of the library send a user of the command line nowhere."""
    shown = command(*words.split(), "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f"usage: go-rl {words}" in shown.out
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
