"""Levels of x86-64, by the flags that Linux tells."""

import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm import codegen
from go_rl.tuning.tvm.codegen import (
    NEEDS,
    CodeTarget,
    code_target,
    highest_clock,
    level_of,
    levels_here,
)

V2, V3, V4 = (" ".join(sorted(NEEDS[f"x86-64-v{i}"])) for i in (2, 3, 4))


@pytest.mark.parametrize(
    ("flags", "levels"),
    [
        ("fpu sse2", ()),
        (V2, ("x86-64-v2",)),
        (f"{V2} {V3}", ("x86-64-v3", "x86-64-v2")),
        (f"{V2} {V3} {V4}", ("x86-64-v4", "x86-64-v3", "x86-64-v2")),
        (f"{V2} {V4}", ("x86-64-v2",)),
    ],
)
def test_levels_of_a_processor(tmp_path, flags, levels):
    facts = tmp_path / "cpuinfo"
    facts.write_text(f"processor : 0\nflags\t\t: {flags}\nbugs : none\n")
    assert levels_here(facts) == levels
    assert levels_here(tmp_path / "absent") == ()


def test_targets_that_do_not_run_here_are_refused(monkeypatch):
    monkeypatch.setattr(codegen, "levels_here", lambda: ("x86-64-v3", "x86-64-v2"))
    assert level_of("") == "x86-64-v3"
    assert level_of("x86-64-v2") == "x86-64-v2"
    with pytest.raises(TuningError, match=r"did you mean 'x86-64-v3'.* run here: x86-64-v3"):
        level_of("x86-64v3")
    with pytest.raises(TuningError, match="does not run on this processor"):
        level_of("x86-64-v4")
    monkeypatch.setattr(codegen, "levels_here", tuple)
    with pytest.raises(TuningError, match="tuned for x86-64 on Linux"):
        level_of("x86-64-v3")


def test_peak_is_lanes_times_clock(monkeypatch):
    """Two units of 16 lanes, each a multiplication and an addition, at 4.5 GHz, on each core."""
    monkeypatch.setattr(codegen, "highest_clock", lambda: 4.5e9)
    assert CodeTarget("x86-64-v4").peak_flops == 2 * 16 * 2 * 4.5e9
    assert CodeTarget("x86-64-v3", cores=3).peak_flops == 3 * 2 * 8 * 2 * 4.5e9


def test_the_clock_is_what_linux_tells_of_the_fastest_core_and_some(tmp_path):
    """A processor that boosts to 5.7 GHz keeps candidates that need them; nothing told: 6.5 GHz."""
    for number, kilohertz in enumerate(("5200000", "5700000", "unknown")):
        path = tmp_path / f"cpu{number}" / "cpufreq" / "cpuinfo_max_freq"
        path.parent.mkdir(parents=True)
        path.write_text(f"{kilohertz}\n")
    assert highest_clock(tmp_path) == pytest.approx(1.05 * 5.7e9)
    assert highest_clock(tmp_path / "absent") == 6.5e9


def test_records_of_several_cores_have_a_target_of_their_own():
    assert CodeTarget("x86-64-v3").of_records("cpu") == "cpu+x86-64-v3"
    assert CodeTarget("x86-64-v3", cores=2).of_records("cpu") == "cpu+x86-64-v3+2-cores"


def test_more_cores_than_there_are_are_refused(monkeypatch):
    monkeypatch.setattr(codegen, "levels_here", lambda: ("x86-64-v3",))
    monkeypatch.setattr(codegen, "own_cores", lambda: [4, 7])
    assert code_target("", 2) == CodeTarget("x86-64-v3", 2)
    with pytest.raises(TuningError, match="3 cores are asked for, and this process may run on 2"):
        code_target("", 3)
