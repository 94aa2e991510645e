"""The ablations of the kernel cost model: what is compared, and its page; tables as files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.kernels.kernel_ablations import SHARES, KernelAblations, Row, page, variants
from experiments.rows import csv_text, read_rows, rows_of_run, run_name
from go_rl.core import ReadError, TrainingError

ROWS = (
    Row("run", "base", "GraphSAGE, column reduction", 800, 10.25, 7.5, 40.0, 0),
    Row("run", "base", "GraphSAGE, column reduction", 800, 9.25, 6.5, 60.0, 1),
    Row("run", "draws", "1: width 32", 800, 12.0, 8.0, 30.0, 0),
    Row("run", "draws", "2: width 64", 800, 16.0, 9.0, 50.0, 0),
)


def test_each_variant_differs_from_the_first():
    found = variants(KernelAblations(steps=7, draws=3, seed=5))
    plain = found[0]
    assert (plain.part, plain.config.steps, plain.config.seed) == ("base", 7, 5)
    assert len({(each.part, each.name) for each in found}) == len(found)
    assert [each.share for each in found if each.part == "data"] == list(SHARES)
    for each in found[1:]:
        assert (each.config, each.share) != (plain.config, plain.share)
    by_part = {each.part: each.config.network for each in found}
    assert replace(by_part["reduction"], reduction="column") == plain.config.network
    assert replace(by_part["encoder"], encoder="graphsage") == plain.config.network
    assert sum(each.part == "draws" for each in found) == 3
    assert variants(KernelAblations(steps=7, draws=3, seed=5)) == found


def test_the_page():
    """10.25 and 9.25: the deviation is 0.71, the standard error 0.5."""
    text = page(ROWS, "kernels-cpu-1", 200, 7)
    assert "kernels-cpu-1, one network of 7 updates for each random split, 200 kernels" in text
    assert "| base | GraphSAGE, column reduction | 800 | 2 | 9.8 ± 0.5 | 7.0 | 50 |\n" in text
    assert "| draws | 2: width 64 | 800 | 1 | 16.0 | 9.0 | 50 |\n" in text
    assert text.endswith(
        "Over 2 draws of hyper-parameters the mean error lies between 12.0 and 16.0 %, 14.0 % on "
        "average with a deviation of 2.0.\n"
    )


def test_rows_come_back_from_their_file(tmp_path):
    path = tmp_path / "rows.csv"
    assert read_rows(Row, path) == []
    path.write_text(csv_text(Row, ROWS))
    assert (
        path.read_text().splitlines()[0] == "run,part,variant,kernels,mean,median,milliseconds,seed"
    )
    assert read_rows(Row, path) == list(ROWS)


@pytest.mark.parametrize(
    ("text", "said"),
    [("part,variant\n", "must have the columns run, part, variant, kernels"),
     ("{head}\nr,a,b,1,2,3,4\n", "row 'r,a,b,1,2,3,4' is damaged"),
     ("{head}\nr,a,b,1.5,2,3,4,5\n", "row 'r,a,b,1.5,2,3,4,5' is damaged")],
)  # fmt: skip
def test_files_of_other_tables_are_named(tmp_path, text, said):
    path = tmp_path / "rows.csv"
    path.write_text(text.replace("{head}\n", csv_text(Row, ())))
    with pytest.raises(ReadError, match=said):
        read_rows(Row, path)


def test_a_run_does_not_go_on_with_rows_of_another(tmp_path):
    path = tmp_path / "rows.csv"
    assert rows_of_run(Row, path, "run") == []
    path.write_text(csv_text(Row, ROWS))
    assert rows_of_run(Row, path, "run") == list(ROWS)
    with pytest.raises(TrainingError, match="rows of other data, another seed or other training"):
        rows_of_run(Row, path, "other")


def test_runs_are_told_apart_by_text_and_data():
    seconds = np.arange(3.0)
    names = {run_name("a", seconds), run_name("b", seconds), run_name("a", seconds + 1)}
    assert len(names) == 3
    assert run_name("a", seconds.copy()) in names
