"""Data sheets: the table of devices, and those of a user's file."""

import json
from dataclasses import replace

import pytest

from go_rl.costs.devices import DeviceError, assumed, find_device, load_device, with_launch

SHEET = {"Device": "Mine", "Dev_Mem": 16, "Mem_Bw": 500, "Num_Sm": 50, "Core_Per_SM": 64,
         "Freq": 1500, "SingleFLOPs": 9600, "L2Cache": 4}  # fmt: skip


def written(tmp_path, document) -> str:
    path = tmp_path / "device.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


@pytest.mark.parametrize("name", ["t4", "T4", "tesla-t4", "Tesla T4"])
def test_a_device_has_several_names(name):
    assert find_device(name).multiprocessors == 40


def test_units_of_a_file_become_si(tmp_path):
    sheet = load_device(written(tmp_path, SHEET))
    assert (sheet.device, sheet.memory_bytes, sheet.memory_bandwidth) == ("Mine", 16e9, 500e9)
    assert (sheet.clock_hz, sheet.l2_bytes) == (1.5e9, 4e6)
    assert sheet.vector_flops == sheet.matrix_flops == 9.6e12


def test_matrix_and_vector_units_are_kept_apart(tmp_path):
    document = {k: v for k, v in SHEET.items() if k not in ("SingleFLOPs", "Device")}
    sheet = load_device(written(tmp_path, document | {"SingleFLOPsMM": 40, "SingleFLOPsVEC": 20}))
    assert (sheet.matrix_flops, sheet.vector_flops, sheet.name) == (40e9, 20e9, "device")


def test_architecture_comes_from_the_name_or_the_nearest_numbers(tmp_path):
    near_v100 = {"Dev_Mem": 32, "Mem_Bw": 900, "Num_Sm": 80, "Core_Per_SM": 64, "Freq": 1370,
                 "SingleFLOPs": 14029, "L2Cache": 6}  # fmt: skip
    assert load_device(written(tmp_path, near_v100)).architecture == "volta"
    named = SHEET | {"Device": "NVIDIA L4"}
    assert load_device(written(tmp_path, named)).architecture == "ada"
    far = SHEET | {"Mem_Bw": 50000, "L2Cache": 900}
    unknown = load_device(written(tmp_path, far))
    assert unknown.architecture is None
    assert assumed(unknown) == (
        "Mine: no device of the table is like it; its architecture is unknown",
    )


def test_a_file_with_the_numbers_of_a_device_is_that_device(tmp_path):
    document = {"Dev_Mem": 15, "Mem_Bw": 320, "Num_Sm": 40, "Core_Per_SM": 64, "Freq": 1590,
                "SingleFLOPs": 8141, "L2Cache": 4}  # fmt: skip
    t4 = find_device("t4")
    found = load_device(written(tmp_path, document))
    assert replace(found, name=t4.name, device=t4.device, like=None) == t4
    assert assumed(found) == ("device: architecture and power are those of Tesla T4",)
    assert assumed(t4) == ()


def test_a_host_is_stated_in_microseconds(tmp_path):
    stated = load_device(written(tmp_path, SHEET | {"Launch_us": 32}))
    assert stated.launch_seconds == pytest.approx(32e-6)
    assert load_device(written(tmp_path, SHEET)).launch_seconds is None
    assert with_launch(find_device("t4"), 40.0).launch_seconds == pytest.approx(40e-6)
    assert with_launch(find_device("t4"), None) == find_device("t4")
    with pytest.raises(DeviceError, match=r"^launch_us must be a positive number"):
        with_launch(find_device("t4"), 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Mem_Bw": None}, "has no Mem_Bw"),
        ({"SingleFLOPs": None}, "has no SingleFLOPs .*, nor SingleFLOPsMM and SingleFLOPsVEC"),
        ({"SingleFLOPsMM": 5}, "has both SingleFLOPs and SingleFLOPsMM"),
        ({"Freq": -3}, "Freq must be a positive number, not -3"),
        ({"Mem_Bw": 1e-300}, "Mem_Bw must be from 1e-06 to 1e\\+12, not 1e-300"),
        ({"Mem_Bw": 1e13}, "Mem_Bw must be from 1e-06 to 1e\\+12, not 1"),
        ({"Freq": "fast"}, "Freq must be a positive number, not 'fast'"),
        ({"Num_Sm": 2.5}, "Num_Sm must be a whole number"),
        ({"Launch_us": 0}, "Launch_us must be a positive number, not 0"),
        ({"L2Cache": True}, "L2Cache must be a positive number"),
        ({"Num_SM": 4}, "unknown field 'Num_SM'; did you mean 'Num_Sm'"),
        ({"Device": 7}, "Device must be a name"),
    ],
)
def test_wrong_fields_are_one_clear_error(change, message, tmp_path):
    document = {k: v for k, v in (SHEET | change).items() if v is not None}
    with pytest.raises(DeviceError, match=message):
        load_device(written(tmp_path, document))


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_no_object_is_one_clear_error(content, tmp_path):
    with pytest.raises(DeviceError, match=r"device\.json: "):
        load_device(written(tmp_path, content))


def test_unknown_devices_name_the_nearest():
    with pytest.raises(DeviceError, match="did you mean 'tesla-t4'"):
        load_device("tesla-t5")
    with pytest.raises(DeviceError, match="cannot be read"):
        load_device("no_such_sheet.json")
