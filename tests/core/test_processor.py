"""What Linux says of a processor, and the name that it gets."""

import platform

from go_rl.core.hardware.processor import own_target, processor_name

TWO_CORES = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Some Processor @ 2.00GHz: fast

processor\t: 1
vendor_id\t: SomebodyElse
cpu family\t: 7
model\t\t: 1
"""
PHONE = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


def test_a_processor_is_its_vendor_family_and_model(tmp_path):
    for text, name in (
        (TWO_CORES, "GenuineIntel family 6 model 143"),
        (PHONE, "ARM implementer 0x41 part 0xd40"),
        ("processor\t: 0\n", platform.processor()),
    ):
        facts = tmp_path / "cpuinfo"
        facts.write_text(text)
        assert processor_name(facts) == name


def test_records_are_filed_under_the_processor(tmp_path):
    amd = TWO_CORES.replace("GenuineIntel", "AuthenticAMD").replace("143", "2")
    for text, name in (
        (TWO_CORES, "cpu-1"),
        (amd, "authenticamd-family-6-model-2"),
        (PHONE, "arm-implementer-0x41-part-0xd40"),
    ):
        facts = tmp_path / name
        facts.write_text(text)
        assert own_target(facts) == name
