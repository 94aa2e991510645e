"""Groups of candidates: which measurements make one, and what a batch holds."""

from dataclasses import replace

import numpy as np
import pytest
from costs.tiles.ranks import SETTINGS, flag_data, groups, tile_data

from go_rl.core import TrainingError
from go_rl.costs.tiles.ranks.data import flag_groups, tile_groups


def test_a_group_is_a_kernel_with_two_settings_or_more():
    data = flag_data()
    flags = groups()["flags"]
    assert flags.number.tolist() == list(range(data.kernels.num_kernels - 1))
    assert flags.kernels.hashes == data.kernels.hashes[:-1]
    assert np.diff(flags.first).tolist() == [SETTINGS] * flags.count
    np.testing.assert_array_equal(flags.candidates[:SETTINGS], np.eye(SETTINGS))
    np.testing.assert_array_equal(flags.seconds, data.seconds[flags.row])


def test_nothing_to_compare_is_refused():
    data = flag_data()
    with pytest.raises(TrainingError, match="made: no kernel was measured under two settings"):
        flag_groups(replace(data, setting=np.zeros_like(data.setting)))
    with pytest.raises(TrainingError, match="made: no program was measured under two tilings"):
        tile_groups(tile_data(), np.array([99]))
