"""The page of headroom closed: shares, who is ahead, thresholds, and what is left out."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from reference.comparison_runs import run

from experiments.learning.headroom_closed import key_of, policies
from experiments.learning.headroom_measure import Headroom
from experiments.learning.headroom_runs import (
    RIVALS,
    config_of,
    plans_by_method,
    samples_to,
    seconds_after,
)
from experiments.learning.headroom_tables import (
    Scored,
    ahead_by,
    closed,
    over_best,
    section,
    with_arms,
)
from experiments.rows import in_turn
from go_rl.compare.benchmark.inputs import settings_of
from go_rl.graphs.zoo.problems import zoo_problem

GNMT, NASNET = "gnmt-2-layers.ring16.strict", "nasnet-mobile.ring16.strict"
CURVE = ((1, 0.1, 4.0), (12, 0.2, 2.0), (150, 0.3, 1.1))


def _run(method, seed=0, budget=200, value: float | None = 1.1, curve=CURVE):
    found = run(method, seed=seed, curve=curve, heuristic=4.0, budget=(budget, None))
    return replace(found, value=value, decoder_calls=7)


def _scored(name, runs, reference=2.0, best=1.0, **changes):
    problem = zoo_problem(name)
    room = Headroom(name, problem.family, (reference, reference), best)
    values = {"learns": True, "left_out": ""} | changes
    return Scored(problem, room, best, plans=plans_by_method(runs), **values)


def _everything(value=1.1, curve=CURVE):
    """Runs of all that the page of ``p`` shows."""
    labels = [*with_arms("p"), *with_arms("p placement"), "p fine-tuned", "p scratch"]
    runs = [_run(label, seed, 200, value, curve) for label in labels for seed in range(2)]
    return runs + [
        _run(method, 0, count, 2.0, ()) for method in RIVALS["ring"] for count in (20, 200)
    ]


def test_seconds_after_a_count_are_read_from_the_curve():
    found = _run("policy")
    assert [seconds_after(found, count) for count in (1, 20, 200)] == [4.0, 2.0, 1.1]
    assert seconds_after(_run("policy", value=None), 20) == math.inf
    assert samples_to(found, 2.0) == 12
    assert samples_to(found, 1.0) is None


def test_classical_methods_are_read_from_their_own_runs_of_each_count():
    found = plans_by_method([_run("annealing", 0, 20, 3.0, ()), _run("annealing", 0, 200, 2.5, ())])
    assert found["annealing"].seconds == {20: (3.0,), 200: (2.5,)}


def test_shares_and_differences_are_those_of_the_definition():
    runs = [_run("p"), _run("annealing", 0, 20, 2.0, ()), _run("annealing", 0, 200, 2.0, ())]
    scored = [_scored(GNMT, runs), _scored(NASNET, runs)]
    assert closed(scored, "p", 20).share == pytest.approx(0.0)
    assert closed(scored, "p", 200).share == pytest.approx(math.log(2 / 1.1) / math.log(2))
    assert ahead_by(scored, "p", "annealing", 200).low > 0


def test_a_section_names_what_is_ahead_and_left_out():
    runs = _everything()
    test = [
        _scored(GNMT, runs),
        _scored(NASNET, runs),
        _scored("convdraw.ring16.strict", [], left_out="nothing to win"),
        _scored("unet-deep.ring36.strict", []),
    ]
    text = section("ring", ["p"], test, [_scored("bifpn-d0.ring16.strict", runs)])
    assert "2 of 4 test problems are scored" in text
    assert "Not scored, nothing to win (1): convdraw.ring16.strict." in text
    assert "Not scored, runs are missing (1): unet-deep.ring36.strict." in text
    assert "| annealing | 0% (0% to 0%) | 86% (86% to 86%) | level | policy |" in text
    assert "| p (blind) | 0% (0% to 0%) | 0% (0% to 0%) | level | level |" in text
    assert "| p | 93% | 4 | 0 | 0 | 150 | 150 | 1.00 (1.00 to 1.00) |" in text
    unchosen = section("ring", ["p"], test, [])
    assert "| p | 75%, not chosen on validation | 4 | 0 | 0 | 150 | 150 |" in unchosen


def test_plans_over_the_best_known_weigh_families_equally():
    """Two problems of one family, at 2 and 8 times B, and one of another at B: 2 = sqrt(4 * 1)."""
    best = {GNMT: 1.0, "gnmt-2-layers.ring36.strict": 0.25, NASNET: 2.0}
    scored = [_scored(name, [_run("p")], best=seconds) for name, seconds in best.items()]
    assert over_best(scored, "p", 20) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "name", ["convdraw.ring36.strict.all-chips", "wavenet-4x36-training.p100x4.all"]
)
def test_the_problem_that_runs_is_the_named_one(name):
    named = zoo_problem(name)
    config = config_of(named, 20, 1, ())
    objective, (setting,) = settings_of(config)
    assert str(objective) == named.objective
    assert key_of(named) == (
        named.graph,
        setting.hardware,
        setting.decide,
        str(setting.all_chips),
    )
    assert (config.memory, config.cost) == (True, "analytical")


def test_the_page_shows_weights_with_runs():
    scored = [_scored(GNMT, [_run("p"), _run("p-1.1")]), _scored(NASNET, [])]
    assert policies(scored, ("build/p-1.1.npz", "q", "p")) == ["p-1.1", "p"]


def test_families_take_turns():
    names = (GNMT, "gnmt-2-layers.ring36.strict", NASNET)
    scored = [_scored(name, []) for name in names]
    assert [s.problem.name for s in in_turn(scored, lambda s: s.problem.family)] == [
        GNMT,
        NASNET,
        names[1],
    ]
