"""Features of devices by name, and from a user's file."""

import json
import math

import pytest

from go_rl.costs.devices.data_sheet import DeviceError
from go_rl.costs.devices.device_features import CDMPP_FEATURES, FEATURE_SETS, device_numbers

OF_AMD = ("25-model-17", "26-model-2")


def test_t4_of_the_papers_table():
    """Table 2: 1590 MHz, 16 GB, 320 GB/s, 40 cores."""
    expected = [math.log2(x) for x in (1590e6, 16e9, 320e9, 40)]
    assert device_numbers("T4", features="cdmpp-table") == pytest.approx(expected)


def test_one_die_of_an_mi250x_is_half_of_it():
    """AMD's product page: 220 compute units, 47.9 TFLOP/s, 128 GB at 3.2768 TB/s in all."""
    expected = [math.log2(x / 2) for x in (2 * 1700e6, 128e9, 3.2768e12, 220)]
    assert device_numbers("mi250x-gcd", features="cdmpp-table") == pytest.approx(expected)
    assert device_numbers("mi250x-gcd")[6] == pytest.approx(math.log2(47.9e12 / 2))
    assert device_numbers("mi250x-gcd", features="transfer")[-1] == 6  # waves of 64


def test_two_processors_differ_in_their_first_cache_and_their_peak():
    """48 KiB instead of 32, and twice as wide units."""
    old, new = (device_numbers(f"authenticamd-family-{each}") for each in OF_AMD)
    apart = [b - a for a, b in zip(old, new, strict=True)]
    differ = {n: x for n, x in zip(CDMPP_FEATURES, apart, strict=True) if x and not math.isnan(x)}
    assert differ == pytest.approx({"l1_bytes": math.log2(1.5), "peak_flops": 1.0})


@pytest.mark.parametrize("name", FEATURE_SETS)
def test_unknown_devices_and_numbers_are_nan(name):
    assert all(map(math.isnan, device_numbers("no such device", features=name)))
    assert len(device_numbers("hl-100", features=name)) == len(FEATURE_SETS[name])


def test_a_users_file_extends_the_table(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"Mine": {"clock_hz": 2.0**30, "memory_bytes": None}}))
    found = device_numbers("mine", path, "cdmpp-table")
    assert found[0] == 30
    assert math.isnan(found[1])
    assert device_numbers("t4", path)[0] == math.log2(1590e6)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"mine": {"clok_hz": 1}}, "mine: unknown field 'clok_hz'"),
        ({"mine": {"clock_hz": -1}}, "clock_hz must be a positive number or null"),
        ({"mine": 3}, "mine: must be an object"),
        ([1], "device features are one JSON object"),
    ],
)
def test_bad_files(tmp_path, document, message):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DeviceError, match=message):
        device_numbers("mine", path)


def test_unknown_set():
    with pytest.raises(DeviceError, match="no set of device features 'cdmp'"):
        device_numbers("t4", features="cdmp")
