"""The page on rankings: what choices lose, by hand, and its tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costs.tiles.ranks import SETTINGS, groups, heavy, tile_data

from experiments.kernels.kernel_ranks import (
    FOLDS,
    METHODS,
    Judgement,
    KernelRanks,
    Ranked,
    Row,
    compare,
    joint,
    judge,
    judgements,
    label_folds,
    measured_again,
    page,
    ranked_tiles,
    splits,
    table,
)


@pytest.fixture(scope="module")
def flags() -> Ranked:
    """Kernels of networks a and b, in turn; the default is one of the slow settings."""
    made = groups()["flags"]
    labels = ("a", "b") * made.count
    return Ranked(made, labels[: made.count], ("b",), made.candidates[:, 0] > 0, None)


def test_what_a_choice_loses(flags):
    """The best of each kernel's settings takes 2, the others 3."""
    every = np.arange(flags.groups.count)
    default = judge(flags, every, METHODS["default"](flags, every, every), 0.0)
    assert (default.total, default.apes) == (pytest.approx(50.0), pytest.approx({"a": 50, "b": 50}))
    random = judge(flags, every, None, 0.0)
    assert random.total == pytest.approx(50.0 * (SETTINGS - 1) / SETTINGS)
    assert np.isnan(random.tau)
    light = ~heavy()[:-1]
    best = METHODS["best setting"](flags, np.flatnonzero(light), every)
    found = judge(flags, every, best, 0.0)
    assert found.total == pytest.approx(50.0 * (1 - light.mean()))


def test_what_does_not_apply_says_so(flags):
    every = np.arange(flags.groups.count)
    assert METHODS["analytical"](flags, every, every) == "no estimate"
    tiles = ranked_tiles(tile_data())
    assert tiles.default.sum() == tiles.groups.count
    assert METHODS["analytical"](tiles, every[:1], every[1:3]).shape == (10,)


def test_splits_keep_networks_together(flags):
    found = splits({"flags": flags}, 0)
    folds = found["at random"]["flags"]
    assert len(folds) == FOLDS
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(flags.groups.count))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(flags.groups.count))
    (train, test), (_, other) = found["by model"]["flags"]
    assert {flags.labels[k] for k in train} == {flags.labels[k] for k in other} == {"a"}
    assert {flags.labels[k] for k in test} == {"b"}


def test_networks_that_are_not_held_out_are_in_one_fold_each(flags):
    labels = [f"network {k}" for k in range(flags.groups.count)]
    ranked = replace(flags, labels=tuple(labels), held_out=("network 3", "network 1", "other"))
    folds = label_folds(ranked, 0)
    assert len(folds) == FOLDS
    assert folds[0] == ("network 1", "network 3")
    assert sorted(name for fold in folds for name in fold) == sorted(labels)
    assert folds != label_folds(ranked, 1)


@pytest.mark.slow
def test_a_method_is_judged_on_all_folds_together(flags):
    """What does not depend on what was learned from loses the same on folds as on the whole."""
    split = splits({"flags": flags}, 0)["at random"]
    every = np.arange(flags.groups.count)
    for method in ("default", "random"):
        found = compare(method, {"flags": flags}, split, KernelRanks())["flags"]
        scores = METHODS[method](flags, every, every)
        whole = judge(flags, every, scores, found.seconds)
        assert (found.total, found.apes) == (whole.total, whole.apes)
    assert compare("analytical", {"flags": flags}, split, KernelRanks()) == {}
    learned = compare("weighted", {"flags": flags}, split, KernelRanks(steps=2, members=1))["flags"]
    assert set(learned.apes) == {"a", "b"}


def test_scores_of_folds_belong_to_their_candidates(flags):
    """True seconds choose the best of each kernel, their opposites the worst: 3 for 2."""
    folds = splits({"flags": flags}, 0)["at random"]["flags"]
    told = [flags.groups.seconds[flags.rows(test)] for _, test in folds]
    assert joint(flags, folds, told, 0.0).total == 0.0
    worst = joint(flags, folds, [-each for each in told], 0.0)
    assert worst.total == pytest.approx(50.0)


def test_how_far_two_rounds_agree():
    """The first program's tilings again, times reversed; of the second one, not known well."""
    data = tile_data()
    assert measured_again(data) == ""
    count = np.bincount(data.program)[:2]
    both = np.arange(count.sum())
    seconds = np.concatenate(
        [data.seconds, data.seconds[: count[0]][::-1], data.seconds[both][count[0] :]]
    )
    twice = replace(
        data,
        program=np.concatenate([data.program, data.program[both]]),
        tiles=(*data.tiles, *data.tiles[: len(both)]),
        round=np.concatenate([data.round, np.ones(len(both), np.int64)]),
        seconds=seconds,
        spread=np.concatenate([data.spread, np.where(both < count[0], 0.0, 9.0)]),
    )
    first, again = seconds[: count[0]], seconds[: count[0]][::-1]
    lost = 100 * (again[first.argmin()] / again.min() - 1)
    text = measured_again(twice)
    assert text.startswith(f"{count[0]} tilings measured again hours later: the best of one round")
    assert f"loses {lost:.1f} and {lost:.1f} %" in text


def test_the_tables():
    one = Judgement({"a": 1.0, "b": 4.0, "c": 9.0}, 3.0, float("nan"), 0.5)
    two = Judgement({"a": 2.0, "b": 2.0, "c": 0.0}, 1.25, 0.625, 2.0)
    found = {("tiles", "at random"): {"random": one, "hinge": two}}
    options = KernelRanks(steps=7, members=2, seed=3)
    text = page(found, {("tiles", "at random"): (8, 2)}, {"tiles": ("a", "b")}, options)
    assert "five folds (seed 3). *mse* to *weighted*: 2 networks of 7 updates.\n" in text
    assert text.split("\n\n", 2)[2] == (
        "## Tilings, at random: 8 kernels learned from in the first fold, 2 judged in all\n\n"
        "| | random | hinge |\n| --- | ---: | ---: |\n"
        "| a | 1.0 | 2.0 |\n| b | 4.0 | 2.0 |\n| *mean* | 2.5 | 2.0 |\n| *median* | 2.5 | 2.0 |\n"
        "| all kernels | 3.0 | 1.2 |\n| Kendall's tau | – | 0.62 |\n| seconds | 0.5 | 2.0 |\n"
    )
    rows = table(found, "run")
    assert rows[:2] == [
        Row("run", "tiles", "at random", "random", "APE", "a", 1.0),
        Row("run", "tiles", "at random", "random", "APE", "b", 4.0),
    ]
    assert table(judgements(rows), "run") == rows
