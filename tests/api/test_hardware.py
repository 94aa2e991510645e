"""Hardware from a user's words, and this machine's."""

import json
import subprocess

import pytest

import go_rl
from go_rl.api.hardware import this_machine as machine
from go_rl.api.hardware.new_hardware import NewHardware, describe_hardware
from go_rl.api.hardware.this_machine import MachineFacts, machine_facts, this_machine
from go_rl.core import Hardware, HardwareError, Topology, load_hardware
from go_rl.core.hardware.processor import own_cores, own_target

OWN = {"kind": "npu", "count": 4, "tflops": 10.0, "memory_gb": 4.0, "memory_gb_per_s": 100.0}


def test_presets_follow_one_another_with_the_slowest_links_and_cpus_last():
    found = describe_hardware(NewHardware(devices=("host", "a100x2", "p100"), name="mine"))
    assert [d.kind for d in found.devices] == ["a100", "a100", "p100", "cpu"]
    assert found.links == load_hardware("p100").links
    alone = describe_hardware(NewHardware(devices=("two-hosts-v100",)))
    assert alone.links == load_hardware("two-hosts-v100").links


def test_own_devices_on_a_torus():
    asked = NewHardware(
        **OWN, links="torus", shape=(2, 2), link_gb_per_s=25.0, link_us=10.0, cannot=("Gather*",)
    )
    found = describe_hardware(asked)
    device = found.devices[3]
    assert (device.peak_flops, device.memory_bytes, device.memory_bandwidth) == (1e13, 4e9, 1e11)
    assert (found.links.topology, found.links.latency_seconds) == (Topology.TORUS, 1e-5)
    assert (found.links.shape, device.cannot) == ((2, 2), ("Gather*",))


def test_hosts_on_a_network():
    found = describe_hardware(NewHardware(devices=("v100x4", "v100"), network_gb_per_s=1.2))
    assert found.links.hosts == ((0, 1, 2, 3), (4,))
    assert found.links.groups[0].devices == ((0, 1, 2, 3),)
    assert (found.links.bandwidth, found.links.latency_seconds) == (1.2e9, 1e-5)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "name the devices, such as --devices a100x4"),
        ({**OWN, "link_us": -1.0, "link_gb_per_s": 1.0}, "link_us must be finite and >= 0"),
        ({"kind": "x", "tflops": 1.0}, "--kind x needs --memory-gb, --memory-gb-per-s"),
        ({"tflops": 1.0}, "--tflops needs --kind"),
        ({"supports": ("Conv",), "devices": ("a100",)}, "--supports needs --kind"),
        ({**OWN, "count": 0, "link_gb_per_s": 1.0}, "hardware new: count must be >= 1"),
        ({**OWN, "tflops": 0.0, "link_gb_per_s": 1.0}, "tflops must be finite and > 0"),
        (OWN, "--link-gb-per-s is missing"),
        ({**OWN, "rates": ("bfloat16",)}, "--rates bfloat16 must be a type and TFLOP/s"),
        ({**OWN, "rates": ("bf61=3",)}, "'bf61' is no element type"),
        ({"devices": ("a100xx",)}, "unknown hardware 'a100xx'"),
        ({"devices": ("a100x4",), "links": "rign"}, "did you mean 'ring'?"),
        ({"devices": ("a100x4",), "links": "mesh"}, "a mesh needs shape"),
        ({"devices": ("a100x4",), "links": "mesh", "shape": (3, 2)}, "make the numbers in shape"),
        ({"devices": ("a100", "a100-40gb", "ring2")}, "elements of different widths"),
        ({"devices": ("v100x4",), "network_gb_per_s": 1.0}, "--network-gb-per-s joins hosts"),
        ({"devices": ("ring2", "ring2"), "network_gb_per_s": 1.0}, "host 'ring2' must have equal"),
    ],
)
def test_what_is_missing_or_wrong_is_said(asked, words):
    with pytest.raises(HardwareError) as raised:
        describe_hardware(NewHardware(**asked))
    assert words in str(raised.value)


XEON = "flags\t\t: fpu avx avx2 avx512f\ncpu MHz\t\t: 2500.000\n"


@pytest.mark.parametrize(
    ("name", "flavour"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("Tesla V100-SXM2-16GB", "v100-16gb"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", None),
        ("NVIDIA A10G", None),
        ("NVIDIA H200", None),
    ],
)
def test_gpus_are_known_by_what_nvidia_smi_calls_them(name, flavour):
    hardware, said = this_machine(MachineFacts(8, 64e9, XEON, ((name, 79e9),)))
    kinds = [device.kind for device in hardware.devices]
    assert kinds == ([flavour] if flavour else []) + ["host-cpu"]
    assert flavour is None or hardware.devices[0].memory_bytes == 79e9
    assert any(f"GPU {name!r}" in line for line in said)


def test_facts_come_from_nvidia_smi_where_it_is(monkeypatch):
    texts = {"topo": "GPU0 X NV12\n", "--query-gpu=name,memory.total": "NVIDIA L4, 23034\n" * 2}

    def run(command, **_):
        return subprocess.CompletedProcess(command, 0, texts[command[1]], "")

    monkeypatch.setattr(machine.subprocess, "run", run)
    facts = machine_facts()
    assert facts.gpus == (("NVIDIA L4", 23034 * 2**20),) * 2
    assert facts.nvlink
    texts["--query-gpu=name,memory.total"] = "NVIDIA-SMI has failed\n"
    assert machine_facts().gpus == ()

    def missing(command, **_):
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(machine.subprocess, "run", missing)
    assert machine_facts().gpus == ()


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    hardware = load_hardware("tpu-v4-16")
    hardware.save(tmp_path / "mine.json")
    assert Hardware.load(tmp_path / "mine.json") == hardware
    assert json.loads((tmp_path / "mine.json").read_text())["links"]["shape"] == [2, 2, 2]
    with pytest.raises(HardwareError, match="cannot be written"):
        hardware.save(tmp_path)


@pytest.mark.parametrize(("name", "topology"), [("this-ring", "ring"), ("this-cores", "full")])
def test_this_machines_cores_are_devices(name, topology):
    found = load_hardware(name)
    assert found.num_devices == own_cores()
    assert str(found.links.topology) == topology
    assert found.kinds == (own_target(),)


def test_this_machine_is_planned_for_by_name():
    graph = go_rl.load("zoo:ncf")
    problem = go_rl.optimize(graph, hardware="this", method="default", samples=1).problem
    assert problem.hardware == this_machine()[0]
