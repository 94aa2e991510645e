"""Rings of unequal chips and of other memory."""

import pytest

from go_rl.core import HardwareError, load_hardware


def test_every_other_chip_of_a_mixed_ring_is_half_of_it_all():
    full, half, *rest = load_hardware("ring6-mixed").devices
    assert (full, half) * 2 == tuple(rest)
    assert full == load_hardware("ring6").devices[0]
    for what in ("peak_flops", "memory_bytes", "memory_bandwidth"):
        assert getattr(half, what) == getattr(full, what) / 2
    assert half.kind != full.kind


def test_the_memory_is_what_the_name_says():
    chips = load_hardware("ring16-12mb").devices
    assert [chip.memory_bytes for chip in chips] == [12e6] * 16
    mixed = load_hardware("ring4-mixed-8mb")
    assert [chip.memory_bytes for chip in mixed.devices] == [8e6, 4e6, 8e6, 4e6]
    assert mixed.name == "ring4-mixed-8mb"


@pytest.mark.parametrize("name", ["ring16-0mb", "ring16-mixd", "ring0-mixed", "ring9999-mixed"])
def test_bad_names_are_refused(name):
    with pytest.raises(HardwareError):
        load_hardware(name)
