"""The live view of tuning."""

import io

from rich.console import Console

from go_rl.cli.tuning_view import dashboard, line, sparkline, tuning_view
from go_rl.tuning.loop.progress import PartProgress, TuningProgress

PARTS = (
    PartProgress("matmul 4x8", 1, 1e-3, 4e-3, 16, 0.25),
    PartProgress("conv2d 6x6", 3, 2e-3, 3e-3, 8, 0.75, 5e-4),
)
PROGRESS = TuningProgress("net", 1.5, 20.0, 8e-3, 14e-3, 24, PARTS, "conv2d 6x6")


def test_a_line_tells_time_trials_and_latency():
    assert line(PROGRESS) == "1.50/20 min  24 trials  net: 8 ms of 14 ms  (conv2d 6x6)"


def test_a_curve_of_blocks_falls():
    assert sparkline([8.0, 4.0, 1.0]) == "█▄▁"
    assert sparkline([]) == ""
    assert len(sparkline([1.0] * 1000)) <= 48


def test_a_dashboard_has_a_row_for_each_operator():
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(dashboard(PROGRESS, [14e-3, 8e-3]))
    text = console.export_text()
    rows = text[text.index("predicted gain [ms]") :]
    first, second = (rows.index(part.name) for part in reversed(PARTS))
    assert first < second
    assert "75%" in text
    assert "0.5" in text


def test_nothing_is_shown_beside_json(capsys):
    with tuning_view(silent=True) as view:
        view.report("compiling")
        view.watch(PROGRESS)
    assert capsys.readouterr() == ("", "")


def test_lines_where_there_is_no_terminal(capsys):
    with tuning_view() as view:
        view.report("compiling")
        view.watch(PROGRESS)
        view.watch(PROGRESS)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == ["compiling", line(PROGRESS)]


def test_numbers_are_logged_by_operator():
    numbers = PROGRESS.numbers
    assert numbers["latency_ms"] == 8.0
    assert numbers["best_ms/conv2d 6x6"] == 2.0
    assert numbers["predicted_gain_ms/conv2d 6x6"] == 0.5
    assert "predicted_gain_ms/matmul 4x8" not in numbers
