"""The page on tuning: verified speed-ups, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tuning.xla.fakes import Machine, tune

from experiments.tuning import kernel_autotuner
from experiments.tuning.kernel_autotuner import (
    KernelAutotuner,
    Row,
    page,
    row_of,
)
from go_rl.tuning import TuneConfig, TuningError


def row(model: str, guide: str, seed: int, speedup: float) -> Row:
    on = "Acme 1" if guide == "learned" else ""
    count = 10 * (seed + 1)
    speed = (8.0, 8.0 / speedup, speedup)
    return Row(model, guide, seed, 4.0, 50, *speed, count, 30, "Acme 2", on, "", "")


ROWS = [row("a", "learned", 0, 2.0), row("a", "learned", 1, 8.0), row("a", "random", 0, 1.0),
        row("b", "learned", 0, 4.0)]  # fmt: skip


def test_the_page():
    text = page(ROWS)
    assert "4 minutes for each model, guide and seed (2)" in text
    assert "over seeds. Measured on Acme 2; *learned* learned on Acme 1.\n" in text
    assert "| a | 50 | 8 | 4.000 | 1.000 |\n| b | 50 | 8 | 4.000 | – |\n" in text
    assert "| *geometric mean* | | | 4.000 | 1.000 |\n" in text


def test_the_page_says_what_was_calibrated_and_what_ran_beside():
    one = replace(ROWS[0], guide="calibrated", calibration="48 kernels", beside="a test")
    text = page([one])
    assert "*calibrated* is corrected by 48 kernels (once for each machine" in text
    assert "Meanwhile: a test.\n" in text


def test_a_network_that_is_tuned_does_not_calibrate(tmp_path):
    with pytest.raises(TuningError, match="vit-tiny: is tuned and would calibrate"):
        kernel_autotuner.calibrated(KernelAutotuner(models=("vit-tiny",), folder=tmp_path))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Tuned on a made-up machine: a kernel takes as many seconds as it has nodes, and one more."""
    config = TuneConfig(minutes=1.5, guide="everything", candidates=4)
    machine = Machine(lambda nodes, setting: 1.0 + len(nodes))
    return tune(machine, tmp_path_factory.mktemp("tuned"), config)


def test_a_row_keeps_what_was_verified(tuned):
    kept = row_of(tuned, "mlp", "everything", 0, 1.5)
    assert kept.default_ms == pytest.approx(1e3 * tuned.baseline_seconds)
    assert kept.speedup == pytest.approx(kept.default_ms / kept.kept_ms)
    assert kept.kernels == tuned.measured + tuned.replayed


def test_runs_go_on_where_they_stopped(tmp_path, monkeypatch, tuned):
    asked = []

    def made(program, folder, config, records):
        asked.append((program, folder.name, config.guide, config.seed, records.name))
        return tuned

    monkeypatch.setattr(kernel_autotuner, "tune_kernels", made)
    monkeypatch.setattr(kernel_autotuner, "load_program", lambda name: name)
    plain = KernelAutotuner(models=("mlp",), guides=("everything",), seeds=(0,), out=tmp_path)
    plain.run()
    first = (tmp_path / "kernel_autotuner.csv").read_text()
    replace(plain, seeds=(0, 1)).run()
    assert asked == [
        ("zoo:mlp", f"everything-{seed}", "everything", seed, "records") for seed in (0, 1)
    ]
    assert (tmp_path / "kernel_autotuner.csv").read_text().startswith(first)
    assert "| mlp |" in (tmp_path / "kernel_autotuner.md").read_text()
    with pytest.raises(TuningError, match="has runs of 5 minutes"):
        replace(plain, minutes=6.0).run()
