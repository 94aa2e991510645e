"""Tables of results in text, and figures."""

import io
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from small_graphs import graph_of

from go_rl.compare.portfolio.method_rows import rows
from go_rl.core import (
    CurvePoint,
    Evaluation,
    Objective,
    OpKind,
    Plan,
    Status,
    load_hardware,
    plan_for,
)
from go_rl.core.evaluation import failed
from go_rl.core.unit_text import percent, unit_for
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import Node
from go_rl.report.figures import curves_figure, loads_figure, save_loads
from go_rl.report.tables import json_rows
from go_rl.report.text_table import TextTable

ONE = graph_of([Node("a", "MatMul", OpKind.MATMUL, flops=1e6)], name="one")


def plan(
    optimizer: str = "dp", hardware: str = "ring2", seconds: float | None = None, **fields
) -> Plan:
    """A plan whose chip i computes for i + 1 ms and sends for half of that."""
    problem = make_problem(ONE, load_hardware(hardware), ProblemOptions(Objective.RING))
    count = problem.hardware.num_devices
    ramp = np.arange(1.0, count + 1)
    evaluation = Evaluation(
        status=Status.OK,
        seconds=count * 1e-3 if seconds is None else seconds,
        device_seconds=ramp * 1e-3,
        link_seconds=ramp * 5e-4,
        link_bytes=ramp,
        weight_bytes=ramp * 1e5,
        streamed_bytes=np.zeros(count),
        peak_bytes=ramp * 3e5,
    )
    if not math.isfinite(evaluation.seconds):
        evaluation = failed(Status.GAVE_UP, 2, "Nothing was found.")
    return plan_for(
        problem, device=np.zeros(1, np.int16), replicas={}, evaluation=evaluation,
        bound=count * 5e-4, optimizer=optimizer, seed=0, samples=100, wall_seconds=2.0, **fields,
    )  # fmt: skip


def test_rows_by_hand():
    found = (("greedy", 4e-3), ("dp", 1.25e-3), ("random", math.inf))
    table = rows([plan(name, seconds=s) for name, s in found], 1e-3)
    greedy, dp, random = json_rows(table)
    assert greedy["improvement"] == 1.0
    assert greedy["gap"] == pytest.approx(3.0)
    assert dp == {
        "method": "dp", "value": 1.25e-3, "throughput": 800.0, "improvement": 3.2,
        "gap": pytest.approx(0.25), "effective_chips": pytest.approx(3 / 2 ** (2 / 3)),
        "samples": 100, "wall_seconds": 2.0, "status": "ok",
    }  # fmt: skip
    missing = {"value", "throughput", "improvement", "gap", "effective_chips"}
    assert {k for k, v in random.items() if v is None} == missing
    assert random["status"] == "gave-up"


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(2.0, "s"), (1e-3, "ms"), (5e-5, "µs"), (5e-9, "ns"), (1e-12, "ns"), (0.0, "ms")],
)
def test_units(seconds, unit):
    assert unit_for(seconds)[1] == unit


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (3.0, "300.0 %"),
        (10.0, "1000.0 %"),
        (10.1, "no useful bound"),
        (0.0123, "1.2 %"),
        (1.37e-4, "0.014 %"),
        (2e-6, "0.0002 %"),
        (0.0, "0.0 %"),
        (2.2e-16, "0.0 %"),
    ],
)
def test_gaps_in_words(ratio, text):
    assert percent(ratio) == text


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


def heights(axes, label):
    bars = next(c for c in axes.containers if c.get_label() == label)
    return [bar.get_height() for bar in bars]


@pytest.mark.parametrize("chips", [1, 64])
def test_bars_and_lines_show_the_evaluation(chips):
    seconds, memory = loads_figure(plan(hardware=f"ring{chips}"), "net").axes
    ramp = np.arange(1.0, chips + 1)
    assert heights(seconds, "compute") == pytest.approx(ramp)
    assert heights(seconds, "link to the next chip") == pytest.approx(ramp / 2)
    assert [line.get_ydata()[0] for line in seconds.lines] == pytest.approx([chips, chips / 2])
    unit = 1e6 if chips > 4 else 1e3
    assert heights(memory, "weights") == pytest.approx(ramp * 1e5 / unit)
    assert heights(memory, "live tensors at the peak") == pytest.approx(ramp * 2e5 / unit)


@pytest.mark.slow
def test_no_text_lies_on_another():
    for chips in (1, 36, 64):
        figure = loads_figure(plan(hardware=f"ring{chips}"), "net")
        figure.canvas.draw()
        for axes in figure.axes:
            labels = [t.get_window_extent() for t in axes.get_xticklabels() if t.get_text()]
            assert all(a.x1 < b.x0 for a, b in pairwise(labels))
            box, legend = axes.get_window_extent(), axes.get_legend()
            assert legend is not None
            assert legend.get_window_extent().x0 >= box.x1


def test_curves_end_at_the_best_value_and_the_budget():
    curve = (CurvePoint(1, 0.1, 4e-3), CurvePoint(10, 0.5, 2e-3))
    left, right = curves_figure([plan("greedy"), plan(curve=curve)], 1e-3, "net").axes
    (samples,) = (line for line in left.lines if line.get_label() == "dp")
    assert list(samples.get_xdata()) == [1, 10, 100]
    assert list(samples.get_ydata()) == pytest.approx([4.0, 2.0, 2.0])
    assert list(right.lines[0].get_xdata()) == [0.1, 0.5, 2.0]
    assert [line.get_label() for line in left.lines] == ["dp", "proven bound"]


def test_a_model_may_have_any_name(tmp_path):
    """Dollars are no formula, and control characters are escaped."""
    save_loads(plan(), r"$\frac$ " + "\x1b[2J", tmp_path / "loads")
    text = (tmp_path / "loads.svg").read_text()
    assert r"$\frac$ \x1b[2J" in text
