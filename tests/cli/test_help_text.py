"""Help, the reference page, quoted commands, and explanations."""

import json
import re
import shlex
from pathlib import Path

import pytest
from reference.small_rings import ring_problem

import go_rl
from go_rl.cli.parsing.parse import PAGES, parse
from go_rl.cli.reference import reference
from go_rl.cli.table import COMMANDS
from go_rl.graphs.readers import save_graph


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


PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_the_page_of_options_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == reference(), "stale; make reference writes it anew"


ROOT = Path(__file__).parents[2]
GENERATED = "reference.md"


def quoted(page):
    """Command lines in the code blocks of a page, without ``go-rl``."""
    blocks = re.findall(r"^ *```.*?^ *```|(?:^ {4}.*\n)+", page, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [re.match(r"(?:\$|srun|\s)*go-rl (.*)", line) for line in lines]
    return [shlex.split(match[1], comments=True) for match in found if match]


@pytest.mark.slow
def test_quoted_commands_are_understood(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "other").mkdir(parents=True)
    (tmp_path / "runs" / "other" / "config.json").write_text("{}")  # --config is read
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    lines = [tuple(words) for page in pages if page.name != GENERATED
             for words in quoted(page.read_text(encoding="utf-8"))]  # fmt: skip
    assert len(lines) > 150
    for words in dict.fromkeys(lines):
        if words[0] != "COMMAND":
            parse(words)


@pytest.fixture
def plan(command, tmp_path):
    """A plan of three nodes in a row on two chips, and its graph."""
    save_graph(ring_problem(3, [(0, 1), (1, 2)], 2).graph, tmp_path / "chain.npz")
    made = command(
        "optimize", "chain.npz", "--hardware", "ring2", "--method", "greedy", "--out", "out"
    )
    assert made.code == 0, made.err
    return "out/plan.json", "chain.npz"


def test_a_legal_split_is_one_of_those_counted(command, plan):
    found = command("check", *plan, "--explain")
    assert found.code == 0, found.err
    assert "3 legal partitions; this is one of them" in found.out


def test_json_holds_the_explanation(command, plan):
    found = json.loads(command("check", *plan, "--explain", "--json").out)
    assert found["explanation"] == {"partitions": 3, "moves": {}, "blamed": []}


def test_a_large_problem_is_refused_in_a_sentence(command):
    quick = ("--method", "greedy", "--samples", 5, "--out", "out")
    assert command("optimize", "zoo:bert-tiny", *quick).code == 0
    found = command("check", "out/plan.json", "zoo:bert-tiny", "--explain")
    assert found.code == 2
    assert "are too many to try" in found.err
