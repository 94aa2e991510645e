"""`Hardware`: JSON round trip, presets, and the messages of what is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from go_rl.core import MAX_DEVICES, Device, Hardware, HardwareError, Links, Topology, load_hardware
from go_rl.core.hardware.presets import EXAMPLES

CHIP = {"kind": "tile", "peak_flops": 1e12, "memory_bytes": 1e6, "memory_bandwidth": 1e11}
LINKS = {"topology": "ring", "bandwidth": 1e9}
MESH = {**LINKS, "topology": "mesh"}
TILE = Device("tile", 1e12, 1e6, 1e11)


def document(**changes: Any) -> dict[str, Any]:
    return {"name": "p", "devices": [{**CHIP, "count": 2}], "links": LINKS, **changes}


def test_a_short_description_gets_the_defaults():
    read = Hardware.from_json(document())
    assert read == Hardware("p", (TILE, TILE), Links(Topology.RING, 1e9, 0.0))
    assert read.devices[0].host_bandwidth == 16e9
    assert read.element_bytes is None


@pytest.mark.parametrize("name", EXAMPLES)
def test_presets_survive_json(name):
    preset = load_hardware(name)
    assert Hardware.from_json(json.loads(json.dumps(preset.to_json()))) == preset
    assert preset.description


def test_mixed_chips_keep_their_order():
    cpu = Device("cpu", 1e11, 1e9, 1e10, is_cpu=True)
    mixed = Hardware(
        "m", (TILE, replace(TILE, memory_bytes=2e6), TILE, cpu), load_hardware("host").links
    )
    assert [g["count"] for g in mixed.to_json()["devices"]] == [1, 1, 1, 1]
    assert Hardware.from_json(mixed.to_json()) == mixed
    assert (mixed.num_devices, mixed.num_accelerators, mixed.kinds) == (4, 3, ("tile", "cpu"))


def test_a_file_is_read_by_name(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document()))
    assert load_hardware(path) == Hardware.load(path) == Hardware.from_json(document())


CPU_FIRST = [{**CHIP, "kind": "cpu", "is_cpu": True}, CHIP]
BAD = [
    ([], "where: must be a JSON object, not []"),
    (document(name=None, devices=[]), "devices must number 1 to"),
    (document(devices="tile"), "where: devices must be a list, not 'tile'"),
    (document(devices=[{**CHIP, "peak_flop": 1}]), "'peak_flop'; did you mean 'peak_flops'?"),
    (document(devices=[CHIP, {"kind": "x"}]), "where: devices[1]: field 'peak_flops' is missing"),
    (document(devices=[{**CHIP, "memory_bytes": 10**400}]), "memory_bytes must be a finite"),
    (document(devices=[{**CHIP, "launch_seconds": 1e307}]), "launch_seconds must be a number 0 to"),
    (document(links={**LINKS, "latency_seconds": 1e307}), "latency_seconds must be a number 0"),
    (document(devices=[{**CHIP, "count": 10**9}]), f"count must be 1 to {MAX_DEVICES}"),
    (
        document(devices=[{**CHIP, "count": MAX_DEVICES}] * 2),
        f"devices must number 1 to {MAX_DEVICES}, not {2 * MAX_DEVICES}",
    ),
    (document(devices=CPU_FIRST), "list accelerators before CPUs"),
    (document(devices=[CHIP, {**CHIP, "peak_flops": 2e12}]), "devices of kind 'tile' differ"),
    (document(links={**LINKS, "topology": "mash"}), "not 'mash'; did you mean 'mesh'?"),
    (document(links={**LINKS, "shape": [2, 2]}), "shape is for a mesh or torus, not for ring"),
    (document(links={**LINKS, "topology": "mesh"}), "a mesh needs shape"),
    (document(links={**LINKS, "topology": "torus", "shape": [1] * 4}), "it has 4"),
    (document(links={**LINKS, "topology": "mesh", "shape": [2, "2"]}), "shape[1] must be a whole"),
    (document(links={**LINKS, "topology": "mesh", "shape": [0, 2]}), "every number must be >= 1"),
    (
        document(devices=[{**CHIP, "count": 9}], links={**MESH, "shape": [2, 4]}),
        "a mesh of 2 x 4 joins 8 devices, and there are 9; make the numbers in shape multiply to 9",
    ),
    (document(links={**MESH, "shape": [1, 2], "hosts": [[0, 1]]}), "hosts are for fully connected"),
    (document(links={**LINKS, "latency": 1}), "did you mean 'latency_seconds'?"),
]


@pytest.mark.parametrize(("bad", "words"), BAD, ids=[f"{i}-{w}" for i, (_, w) in enumerate(BAD)])
def test_bad_descriptions_are_refused(bad, words):
    with pytest.raises(HardwareError) as error:
        Hardware.from_json(bad, "where")
    assert str(error.value).startswith("where: ")
    assert words in str(error.value)


def test_a_file_without_a_name_is_named_once(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document(name=None, devices=[])))
    with pytest.raises(HardwareError) as error:
        load_hardware(path)
    assert str(error.value) == f"{path}: devices must number 1 to 1024, not 0"


def test_the_multi_chip_module_is_the_papers():
    ring = load_hardware("ring36")
    assert ring.num_devices == 36
    assert ring.links == Links(Topology.RING, 16e9, 0.0)
    assert ring.element_bytes == 1.0
    assert (ring.devices[0].peak_flops, ring.devices[0].memory_bytes) == (24e12, 32e6)


@pytest.mark.parametrize(
    ("name", "called", "devices", "topology"),
    [
        ("ring1", "ring1", 1, Topology.RING),
        ("ring64", "ring64", 64, Topology.RING),
        ("p100x2", "p100x2", 2, Topology.FULL),
        ("gpu-v100x3", "v100x3", 3, Topology.FULL),
        ("gpu4", "a100x4", 4, Topology.FULL),
        ("h100x8", "h100x8", 8, Topology.FULL),
        ("host", "host", 1, Topology.FULL),
    ],
)
def test_presets_by_name(name, called, devices, topology):
    preset = load_hardware(name)
    assert (preset.name, preset.num_devices, preset.links.topology) == (called, devices, topology)


def test_only_hosts_and_cores_are_cpus():
    assert [load_hardware(name).num_accelerators == 0 for name in EXAMPLES] == [
        name == "host" or name.startswith("cpu-1") for name in EXAMPLES
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rng36", "unknown hardware 'rng36'; did you mean 'ring36'?"),
        ("ring", "did you mean 'ring"),
        ("zzz", "Presets: ringN"),
        ("ring0", "devices must number 1 to 1024"),
        ("ring1025", "devices must number 1 to 1024"),
        ("a100x9999", "hardware 'a100x9999': devices must number"),
        ("nowhere.json", "nowhere.json: cannot be read"),
    ],
)
def test_unknown_presets_are_refused(name, words):
    with pytest.raises(HardwareError) as error:
        load_hardware(name)
    assert words in str(error.value)
