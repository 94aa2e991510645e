"""``go-rl evaluate`` on a tiny graph, and its bad input."""

import csv
from pathlib import Path

import pytest

from go_rl.cli.stopping import Terminated
from go_rl.report.comparison import FILES

FLAGS = (
    "--hardware",
    "ring2",
    "--rules",
    "strict",
    "--samples",
    12,
    "--seeds",
    2,
    "--out",
    "found",
)


pytestmark = pytest.mark.usefixtures("untimed")


def rows(name: str) -> list[dict[str, str]]:
    with Path("found", name).open() as file:
        return list(csv.DictReader(file))


def test_tables_and_curves_of_a_chain(command, chain):
    run = command("evaluate", chain, *FLAGS, "--methods", "greedy", "annealing", "random")
    assert run.code == 0, run.err
    assert sorted(p.name for p in Path("found").iterdir()) == sorted((*FILES, "runs.jsonl"))
    runs = rows("runs.csv")
    assert [(r["method"], r["seed"]) for r in runs] == [
        ("greedy", "0"), ("annealing", "0"), ("annealing", "1"), ("random", "0"), ("random", "1"),
    ]  # fmt: skip
    assert {r["graph"] for r in runs} == {"chain"}
    # Six operators of 1 ms on two chips: three each, and one link.
    assert float(runs[0]["value"]) == pytest.approx(3e-3, rel=1e-3)
    summary = rows("summary.csv")
    assert [r["method"] for r in summary] == ["greedy", "annealing", "random"]
    assert summary[0]["improvement_at_10_samples"] == "1.0"
    assert summary[0]["samples_to_1.6"] == "never"
    text = Path("found/summary.md").read_text()
    assert "## ring2, rules strict" in text
    assert "| annealing | 1.000× |" in text
    assert "annealing" in run.out


BAD = {
    "unknown method": (["--methods", "gredy"], "did you mean 'greedy'?"),
    "unknown package": (["--hardware", "ringg2"], "unknown hardware 'ringg2'"),
    "unknown rules": (["--rules", "strickt"], "did you mean 'strict'?"),
    "no seeds": (["--seeds", "0"], "evaluate: --seeds must be >= 1"),
    "no samples": (["--samples", "0"], "budget: --samples must be >= 1"),
    "threshold of nothing": (["--thresholds", "0"], "thresholds must be > 0"),
    "controls without a policy": (["--controls"], "none of greedy has one"),
    "control without a policy": (["--control", "blind"], "none of greedy has one"),
    "decide on a ring": (["--decide", "fusion"], "evaluate: --decide has no meaning"),
    "bound": (["--bound-seconds", "-1"], "evaluate: --bound-seconds must be finite and >= 0"),
    "both": (["--controls", "--control", "blind"], "evaluate: --controls runs all control arms"),
    "once": (["--once", "random"], "evaluate: --once names 'random', which is no method"),
    "a file in the way": (["--out", "taken"], "taken: cannot be written"),
}


@pytest.mark.parametrize(("flags", "message"), BAD.values(), ids=BAD)
def test_one_clear_line(command, chain, flags, message):
    Path("taken").write_text("mine")
    run = command("evaluate", chain, "--methods", "greedy", *FLAGS[:-2], *flags)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1), run.err
    assert message in run.err
    assert Path("taken").read_text() == "mine"
    assert not Path("out").exists()


def test_an_unknown_graph_of_the_zoo(command):
    run = command("evaluate", "zoo:unett", "--methods", "greedy")
    assert (run.code, run.err.count("\n")) == (2, 1)
    assert "did you mean 'unet'?" in run.err


@pytest.mark.parametrize(
    ("words", "called", "kept"),
    [
        ("evaluate chain.json", "go_rl.api.evaluate.evaluate", "finished runs"),
        ("measure kernels found", "go_rl.api.measure.measure_kernels", "the times measured"),
        ("calibrate --device this", "go_rl.api.this_device.calibrate", "the times measured"),
    ],
)
def test_a_stopped_command_that_goes_on_says_what_is_kept(
    command, chain, monkeypatch, words, called, kept
):
    def stop(*given, **options):
        raise Terminated

    monkeypatch.setattr(called, stop)
    found = command(*words.split())
    said = f"go-rl: stopped; {kept} are kept, and the same command goes on from there\n"
    assert (found.code, found.out, found.err) == (143, "", said)
