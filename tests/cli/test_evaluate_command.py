"""``go-rl evaluate`` on a tiny graph, and its bad input."""

import csv
from pathlib import Path

import pytest
from policy.tiny import tiny_agent

from go_rl.cli.stopping import Terminated
from go_rl.policy.weights import Weights, save_weights
from go_rl.report.comparison import FILES

FLAGS = ("--hardware", "ring2", "--rules", "strict", "--samples", 12, "--seeds", 2, "--out",
         "found")  # fmt: skip


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


def test_the_next_command_has_the_weights_of_the_policy_that_did_best(command, chain):
    save_weights(Weights(tiny_agent(), "tiny", {}), "tiny.npz")
    few = (*FLAGS[:4], "--samples", 4, "--seeds", 1, "--weights", "tiny.npz", "--out", "out")
    alone = command("evaluate", chain, *few, "--methods", "policy")
    assert alone.out.splitlines()[-1].endswith("--weights tiny.npz --method policy"), alone.out
    # Both have the optimum; the first of equals is named, which takes no weights.
    beside = command("evaluate", chain, *few, "--methods", "greedy", "policy")
    assert beside.out.splitlines()[-1].endswith("--rules strict --method greedy"), beside.out


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
