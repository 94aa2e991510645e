"""`CompiledStruct`: what kernels read and write through one pointer, and what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Bool, Float64, Int32, Int64, config

from go_rl.core.compiled_struct import CompiledStruct, compiled


@dataclass(frozen=True, eq=False)
class Sample(CompiledStruct):
    """One field of each kind."""

    count: int
    scale: float
    on: bool
    words: Int64[np.ndarray, "n"]
    small: Int32[np.ndarray, "m"]
    table: Float64[np.ndarray, "a b"]
    cube: Float64[np.ndarray, "a b c"]
    flags: Bool[np.ndarray, "n"]


def sample(**changed) -> Sample:
    fields = {
        "count": -3, "scale": 0.5, "on": True, "words": np.array([5, 6, 7]),
        "small": np.array([1, -2], np.int32), "table": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "cube": np.arange(24.0).reshape(2, 3, 4), "flags": np.array([True, False, True]),
    }  # fmt: skip
    return Sample(**{**fields, **changed})


@compiled
def _digest(s: Sample) -> float:
    total = s.count * 1000 + s.scale + (100.0 if s.on else 0.0)
    for i in range(len(s.words)):
        if s.flags[i]:
            total += s.words[i]
    for i in range(len(s.small)):
        total += s.small[i]
    return total + s.table[1, 2] + s.cube[1, 2, 3] + s.cube.shape[1] * 1e-3


@compiled
def _write(s: Sample) -> None:
    s.words[1] = -1
    s.table[0, 1] = 9.0
    s.flags[1] = True


def test_a_kernel_reads_every_kind_of_field():
    # -3000 + 0.5 + 100 + (5 + 7) + (1 - 2) + 6 + 23 + 0.003
    assert _digest(sample()) == pytest.approx(-2859.497, abs=1e-9)
    assert _digest(sample(on=False, count=0)) == pytest.approx(40.503, abs=1e-9)


def test_another_number_of_dimensions_is_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"Sample\.words has 2 dimensions, not 1"):
        sample(words=np.zeros((2, 2), np.int64))


def test_room_is_made_of_named_dimensions():
    sizes = {"n": 3, "m": 2, "a": 2, "b": 3, "c": 4}
    given = np.ones(2, np.int32)
    room = Sample.zeros(sizes, count=1, scale=2.0, on=False, small=given)
    assert (room.count, room.scale, room.on, room.small is given) == (1, 2.0, False, True)
    assert room.cube.shape == (2, 3, 4)
    assert not room.cube.any()
    assert (room.words.dtype, room.flags.dtype) == (np.int64, np.bool_)
    _write(room)
    assert room.words.tolist() == [0, -1, 0]
