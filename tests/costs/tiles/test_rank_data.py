"""Groups of candidates: which measurements make one, and what a batch holds."""

from dataclasses import replace

import numpy as np
import pytest
from costs.tiles.ranks import PROGRAMS, SETTINGS, flag_data, groups, tile_data

from go_rl.core import TrainingError
from go_rl.costs.tiles import tile_features
from go_rl.costs.tiles.ranks.data import CONFIDENT, candidate_batch, flag_groups, tile_groups


def test_a_group_is_a_kernel_with_two_settings_or_more():
    data = flag_data()
    flags = groups()["flags"]
    assert flags.number.tolist() == list(range(data.kernels.num_kernels - 1))
    assert flags.kernels.hashes == data.kernels.hashes[:-1]
    assert np.diff(flags.first).tolist() == [SETTINGS] * flags.count
    np.testing.assert_array_equal(flags.candidates[:SETTINGS], np.eye(SETTINGS))
    np.testing.assert_array_equal(flags.seconds, data.seconds[flags.row])


def test_other_settings_and_later_rounds_do_not_count():
    data = flag_data()
    plain = data.setting.copy()
    plain[1] = 0
    later = data.round.copy()
    later[2] = 1
    some = flag_groups(replace(data, setting=plain, round=later), np.array([0, 3]))
    assert some.number.tolist() == [0, 3]
    assert some.group.tolist() == [0] * 6 + [1] * 8
    assert some.row[:3].tolist() == [0, 3, 4]


def test_times_that_are_hardly_known_do_not_count():
    flags, tiles = flag_data(), tile_data()
    for data, grouped in ((flags, flag_groups), (tiles, tile_groups)):
        spread = np.full(len(data.seconds), CONFIDENT)
        spread[1] = 1.01 * CONFIDENT
        some = grouped(replace(data, spread=spread))
        assert 1 not in some.row
        assert len(some.row) == len(grouped(data).row) - 1


def test_candidates_of_a_program_are_its_tilings():
    data = tile_data()
    order = np.random.default_rng(0).permutation(len(data.program))
    mixed = replace(
        data, program=data.program[order], tiles=tuple(data.tiles[i] for i in order),
        seconds=data.seconds[order],
    )  # fmt: skip
    some = tile_groups(mixed).take(np.array([3, 1]))
    assert some.number.tolist() == [1, 3]
    assert some.kernels.num_kernels == 2
    row = some.first[1]
    of = mixed.tiles[some.row[row]]
    np.testing.assert_allclose(some.candidates[row], tile_features(PROGRAMS[3], of), rtol=1e-6)
    assert some.seconds[row] == mixed.seconds[some.row[row]]


def test_a_batch_pads_and_draws():
    tiles = groups()["tiles"]
    rng = np.random.default_rng(0)
    batch = candidate_batch(tiles, np.array([2, 0]), (3, 7), rng)
    assert batch.real.sum(axis=1).tolist() == [5, 5, 0]
    np.testing.assert_allclose(np.exp(batch.log_seconds[1, :5]), tiles.seconds[:5], rtol=1e-5)
    few = candidate_batch(tiles, np.array([0]), (1, 4), rng)
    assert few.real.sum() == 4
    assert len(set(few.log_seconds[0].tolist()) - set(np.log(tiles.seconds[:5], dtype="f4"))) == 0


def test_nothing_to_compare_is_refused():
    data = flag_data()
    with pytest.raises(TrainingError, match="made: no kernel was measured under two settings"):
        flag_groups(replace(data, setting=np.zeros_like(data.setting)))
    with pytest.raises(TrainingError, match="made: no program was measured under two tilings"):
        tile_groups(tile_data(), np.array([99]))
