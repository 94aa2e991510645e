"""GO as published: its arms, the tables by hand, and the long runs that make its weights."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest

from experiments.learning.long_runs import listed
from experiments.placement.go_published import (
    ARMS,
    CLASSICAL,
    EQUAL_SECONDS,
    LEARNED,
    POLICY,
    PPO,
    Run,
    paired,
    published_arm,
    published_sections,
    search_speed_up,
    weights_folder,
)
from experiments.placement.go_rows import ROWS
from experiments.placement.hdp_reproduction import Run as HdpRun
from go_rl.cli.commands.train.policy import TrainNodes
from go_rl.cli.parsing.parse import parse
from go_rl.objectives.methods import MakespanAnnealing
from go_rl.policy.learn.config import NodesTrainConfig
from go_rl.policy.learn.fine_tune import FineTuned

ROW, OTHER = list(ROWS)[:2]


def run(arm: str, best: float, row: str = ROW, seed: int = 0, **further) -> Run:
    """The expert takes 10 ms; the best comes after 50 of 100 seconds."""
    curve = [[1, 5.0, 20.0], [100, 50.0, best]]
    one = Run(row, arm, seed, 200, 10.0, best, 100.0, curve, "gradients")
    return replace(one, **further)


def hdp(best: float, row: str = ROW, attempt: str = "published") -> HdpRun:
    """The best comes after 750 of 1,000 seconds."""
    curve = [[1, 5.0, 20.0], [600, 750.0, best]]
    return HdpRun(row, attempt, "", 0, 1000, 20.0, 10.0, best, 1000.0, curve, [], "gradients")


def test_step_times_are_paired_by_row_and_seed():
    runs = [
        run("GO-one", 6.0), run("GO-one", 9.0, OTHER), run("GO-one", 9.0, OTHER, 1),
        run("annealing", 8.0), run("annealing", 9.0, OTHER), run("composed", 12.0),
        run("composed", 6.0, OTHER),
    ]  # fmt: skip
    assert paired(runs, "GO-one", "annealing") == [0.75, 1.0]
    assert paired(runs, "GO-one", "best classical") == [0.75, 1.5]
    assert paired(runs, "GO-one", f"best classical{EQUAL_SECONDS}") == []
    text = published_sections(runs, [])
    assert "| GO-one over best classical | 1.061 | 2 | 1 | 1 |" in text
    assert f"| {OTHER} | 0.900 (2) | 0.900 (1) | 0.600 (1) |" in text


def test_search_time_of_hdp_over_that_of_go():
    """HDP needs 750 s for 7 ms; GO has 6 ms after 50 s. Of 5 ms GO never is as good."""
    assert search_speed_up(run("GO-one", 6.0), hdp(7.0)) == 15.0
    assert np.isnan(search_speed_up(run("GO-one", 6.0), hdp(5.0)))
    untimed = replace(hdp(7.0), curve=[[1, 20.0], [600, 7.0]])
    assert np.isnan(search_speed_up(run("GO-one", 6.0), untimed))
    one = [run("GO-one", 6.0), run("GO-one", 6.0, OTHER)]
    rivals = [hdp(7.0), hdp(5.0, OTHER), hdp(7.0, OTHER, "normalised")]
    text = published_sections(one, rivals)
    assert "Geometric mean of 1 of 2: 15.0" in text
    assert f"| {OTHER}, seed 0 | 6.00 | 5.00 | – |" in text


def test_colocated_runs_alone_are_shown_by_decisions_and_samples():
    plain = run("GO-one", 6.0, colocate="graph")
    assert published_sections([plain], []) == ""
    few = published_sections([plain, run("GO-one", 6.0, samples=50)], [])
    assert few.count("## GO as published: placement, 50 samples") == few.count("##") == 1
    both = [run("GO-one", 6.0), run("GO-one", 6.0, decide="placement+schedule+fusion")]
    text = published_sections(both, [])
    assert "GO as published: placement, 200" in text
    assert "GO as published: placement+schedule+fusion, 200" in text


def test_arms():
    assert ARMS.index("GO-one") < ARMS.index(f"annealing{EQUAL_SECONDS}")
    assert {*LEARNED, *CLASSICAL} < {*ARMS}
    for name, blind in (("GO-one", False), ("GO-one, blind", True)):
        one = published_arm(name, "placement", 3)
        assert isinstance(one, FineTuned)
        assert one.agent is not None
        assert (one.agent.config, one.agent.blind) == (POLICY, blind)
    assert isinstance(published_arm("annealing, equal seconds", "all", 0), MakespanAnnealing)
    with pytest.raises(SystemExit, match="make long trains it"):
        published_arm("GO zero-shot", "no such decision", 99)


def test_long_runs_train_what_the_arms_take():
    """Every pretraining run has the published network and learner, and the folder of its seed."""
    found = {each.name: each for each in listed()}
    for decide in ("placement", "placement+schedule+fusion"):
        for seed in range(3):
            name = weights_folder(decide, seed)
            words = shlex.split(found[name].command)
            assert words[:1] == ["go-rl"]
            _, options = parse(words[1:])
            assert isinstance(options, TrainNodes)
            given = options.given
            assert isinstance(given, NodesTrainConfig)
            assert (given.policy, given.ppo, given.top, given.seed) == (POLICY, PPO, None, seed)
            assert given.decide == (tuple(decide.split("+")),)
            assert (given.generated, given.colocate, given.name) == (3000, "gradients", name)
            assert options.out == f"experiments/learning/runs/{name}"
