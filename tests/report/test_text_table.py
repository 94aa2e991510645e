"""Tables for a terminal: units and names as they are, and no figure cut at any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from go_rl.report.notes import note_lines, shortened
from go_rl.report.text_table import TextTable

HEADS = ("method", "T_max [ms]", "throughput", *(f"{n:,}" for n in (1, 10, 100, 1000)), "failed")
ROWS = [
    (name, "123.456×", "1.25 [1.20, 1.30]", "1.01×", "1.02×", "1.03×", "1.04×", "0/48")
    for name in ("greedy", "policy-placement")
]


def shown(table: TextTable, width: int) -> list[list[str]]:
    """The lines of each part, as a terminal of this width gets them."""
    parts = []
    for part in table.tables(width):
        out = io.StringIO()
        Console(file=out, width=width, markup=False, emoji=False, highlight=False).print(part)
        parts.append(out.getvalue().splitlines())
    return parts


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_no_cell_is_cut_or_wrapped(width):
    parts = shown(TextTable("ring36", HEADS, ROWS), width)
    lines = [line for part in parts for line in part]
    assert max(len(line) for line in lines) <= width
    text = "\n".join(lines)
    assert "…" not in text
    assert all(cell in text for cell in (*HEADS, *(c for row in ROWS for c in row)))
    assert all(any("policy-placement" in line for line in part) for part in parts)
    assert len(parts) == {60: 3, 80: 2, 110: 1, 200: 1}[width]


def test_parts_are_about_equally_wide():
    parts = shown(TextTable("ring36", HEADS, ROWS), 80)
    wide = [max(len(line.rstrip()) for line in part) for part in parts]
    assert max(wide) - min(wide) < 20


def test_prose_wraps_and_a_name_wider_than_the_screen_is_folded():
    heads, words = ("hardware", "what"), "many words " * 20
    parts = shown(TextTable("t", heads, [("ring36", words)], prose=("what",)), 60)
    assert len(parts) == 1
    assert sum(line.count("many") for line in parts[0]) == 20
    name = "x" * 100
    (lines,) = shown(TextTable("t", ("graph", "nodes"), [(name, "7")]), 60)
    assert max(len(line) for line in lines) <= 60
    assert sum(line.count("x") for line in lines) == 100


def test_brackets_and_colons_are_no_markup(monkeypatch):
    from go_rl.cli import console

    out = io.StringIO()
    monkeypatch.setattr(console.sys, "stdout", out)
    table = TextTable("[bold]m[/x] :smile:", ("T_max [ms]", "n"), [("layer[red]", "[/] [1]")])
    console.print_table(console.console(), table)
    console.print_line(console.console(), "node 'a[b]/c' [/ms] :x:")
    for text in ("[bold]m[/x] :smile:", "T_max [ms]", "layer[red]", "[/] [1]",
                 "node 'a[b]/c' [/ms] :x:"):  # fmt: skip
        assert text in out.getvalue()


def test_a_long_list_is_shortened_to_its_first_names_and_a_count():
    names = [f"params['layer_{i}']['kernel']" for i in range(300)]
    note = f"inputs that no result depends on are left out: {', '.join(names)}"
    short = shortened(note)
    assert len(short) < 300
    shown_names = short.count("kernel")
    assert 3 <= shown_names < 10
    assert short.endswith(
        f"{names[shown_names - 1]} and {300 - shown_names} more (all with --json)"
    )
    assert note_lines(["a short note"]) == ["note: a short note"]
    assert shortened("word" * 100) == "word" * 60 + "... (160 more characters, all with --json)"
