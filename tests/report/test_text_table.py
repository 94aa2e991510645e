"""Tables for a terminal: units and names as they are, and no figure cut at any width."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from go_rl.report.text_table import TextTable

HEADS = ("method", "T_max [ms]", "throughput", *(f"{n:,}" for n in (1, 10, 100, 1000)), "failed")
ROWS = [
    (name, "123.456×", "1.25 [1.20, 1.30]", "1.01×", "1.02×", "1.03×", "1.04×", "0/48")
    for name in ("greedy", "order-policy-anew")
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
    assert all(any("order-policy-anew" in line for line in part) for part in parts)
    assert len(parts) == {60: 3, 80: 2, 110: 1, 200: 1}[width]


@given(
    st.integers(20, 200),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=12),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=230), min_size=1, max_size=5),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=9),
)
@settings(max_examples=25)
def test_any_table_ends_at_any_width_with_all_its_rows(width, heads, names, texts):
    cells = [[name, *(texts[(i + k) % len(texts)] for k in range(len(heads) - 1))]
             for i, name in enumerate(names)]  # fmt: skip
    table = TextTable("title", heads, cells, prose=heads[2:3], words=heads[1:2])
    parts = list(table.tables(width))
    assert [part.row_count for part in parts] == [len(names)] * len(parts)
    columns = [len(part.columns) for part in parts]
    assert sum(columns) - len(parts) == len(heads) - 1
    lines = [line for part in shown(table, width) for line in part]
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("width", [20, 36, 40, 60, 80])
def test_names_longer_than_the_screen(width):
    """A kernel of a compiled training step, as `predict` showed it for ever."""
    name = "jit(step)/" + "/".join(f"transpose(jvp(Block_{i}))" for i in range(9)) + "/dot_general"
    cells = [(name, "linear", "64 × 64 × 64", "1.234", "99.9%")] * 3
    parts = shown(TextTable("t", ("kernel", "priced as", "sizes", "ms", "share"), cells), width)
    shortened_names = [line for part in parts for line in part if "…" in line]
    assert len(shortened_names) == 3 * len(parts)
    assert all("jit" in line and "general"[-2:] in line for line in shortened_names)


def test_no_control_character_of_a_name_reaches_the_terminal():
    table = TextTable("a\x1b[2Jb", ("op\x07", "n"), [("x\x1b]0;owned\x07", "\u202e1")])
    (lines,) = shown(table, 80)
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert r"a\x1b[2Jb" in text
    assert r"x\x1b]0;owned\x07" in text
    assert r"\u202e1" in text
