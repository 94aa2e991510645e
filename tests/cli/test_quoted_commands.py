"""Every command that README and docs/ quote is one that go-rl takes."""

import re
import shlex
from pathlib import Path

import pytest

from go_rl.cli.parsing.parse import parse

ROOT = Path(__file__).parents[2]
GENERATED = "reference.md"


def quoted(page):
    """Command lines in the code blocks of a page, without ``go-rl``."""
    blocks = re.findall(r"^ *```.*?^ *```|(?:^ {4}.*\n)+", page, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [re.match(r"(?:\$|srun|\s)*go-rl (.*)", line) for line in lines]
    return [shlex.split(match[1], comments=True) for match in found if match]


@pytest.mark.slow
def test_quoted_commands_are_understood():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    lines = [tuple(words) for page in pages if page.name != GENERATED
             for words in quoted(page.read_text(encoding="utf-8"))]  # fmt: skip
    assert len(lines) > 150
    for words in dict.fromkeys(lines):
        if words[0] != "COMMAND":
            parse(words)
