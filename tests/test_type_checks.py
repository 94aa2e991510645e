"""Checked functions accept and refuse what jaxtyping's own do."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Float64, Int64, TypeCheckError, config
from type_checks import ALWAYS, EVERY, checked, in_full

DECORATORS = {"checked": checked, "in full": in_full}
LETTERS = np.zeros(3)
OTHERS = np.zeros(4)


@pytest.fixture(params=DECORATORS)
def typed(request) -> Callable[[Any], Any]:
    """The decorator under test, and the one it stands for."""
    return DECORATORS[request.param](typechecker=beartype)


def plain(count: int, name: str = "a", *, ratio: float = 0.5) -> str:
    """Return what it is told to return: a name, unless it is "none"."""
    return None if name == "none" else name * count


def joined(
    left: Float64[np.ndarray, "N"], right: Float64[np.ndarray, "N"] | None, longer: int = 0
) -> Float64[np.ndarray, "N"]:
    """Return zeros, as many as on the left and some more."""
    return np.zeros(len(left) + longer)


def repeated(count: int) -> Float64[np.ndarray, "{count}"]:
    """Return three zeros."""
    return np.zeros(3)


def counted(count: int) -> Iterator[int]:
    """Yield what is not promised."""
    yield from (str(i) for i in range(count))


@pytest.mark.parametrize(
    ("function", "arguments", "options"),
    [
        (plain, (2,), {}),
        (plain, (2, "b"), {"ratio": 1.0}),
        (joined, (LETTERS, LETTERS), {}),
        (joined, (LETTERS, None), {}),
        (repeated, (3,), {}),
    ],
)
def test_right_types_pass(typed, function, arguments, options):
    found, expected = typed(function)(*arguments, **options), function(*arguments, **options)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "arguments", "options"),
    [
        (plain, ("2",), {}),
        (plain, (2, 3), {}),
        (plain, (2,), {"ratio": "half"}),
        (plain, (2, "none"), {}),
        (joined, (LETTERS, OTHERS), {}),
        (joined, (LETTERS.astype(np.float32), None), {}),
        (joined, (LETTERS[None], None), {}),
        (joined, (LETTERS, None, 1), {}),
        (repeated, (4,), {}),
        (counted, ("3",), {}),
    ],
)
def test_wrong_types_and_sizes_are_refused(typed, function, arguments, options):
    with pytest.raises(TypeCheckError):
        typed(function)(*arguments, **options)


def test_sizes_bind_anew_in_each_call(typed):
    inner = typed(joined)

    def outer(left: Float64[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
        inner(OTHERS, OTHERS)
        return inner(left, None)

    assert len(typed(outer)(LETTERS)) == 3
    assert len(typed(outer)(OTHERS)) == 4


def test_data_classes_and_their_methods_are_checked(typed):
    @typed
    @dataclass(frozen=True)
    class Pair:
        left: Float64[np.ndarray, "N"]
        right: Int64[np.ndarray, "N"]

        @property
        @typed
        def length(self) -> str:
            return len(self.left)

        @classmethod
        @typed
        def of(cls, count: int) -> Any:
            return cls(np.zeros(count), np.zeros(count, np.int64))

        @staticmethod
        @typed
        def half(count: int) -> int:
            return count / 2

    assert len(Pair.of(2).left) == 2
    assert inspect.signature(Pair).parameters.keys() == {"left", "right"}
    for wrong in (
        lambda: Pair(LETTERS, np.zeros(4, np.int64)),
        lambda: Pair(LETTERS, LETTERS),
        lambda: Pair.of("2"),
        lambda: Pair.half(3),
        lambda: Pair.of(2).length,
    ):
        with pytest.raises(TypeCheckError):
            wrong()


def test_checks_can_be_switched_off(typed, monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    assert typed(plain)(2, "none") is None
    assert typed(plain)(True, [3]) == [3]


def test_some_of_very_many_calls_are_checked():
    typed = checked(plain, typechecker=beartype)
    for _ in range(ALWAYS):
        typed(1)
    refused = 0
    for _ in range(2 * EVERY):
        try:
            typed(2, "none")
        except TypeCheckError:
            refused += 1
    assert refused == 2


def test_numba_finds_the_function_inside(typed):
    assert inspect.unwrap(typed(plain)) is plain


def test_a_class_defined_later_is_checked():
    names = {"__name__": __name__, "checked": checked(typechecker=beartype)}
    exec(
        "from __future__ import annotations\n"
        "@checked\ndef early(item: Later) -> int:\n    return 1\n"
        "class Later:\n    pass\n",
        names,
    )
    assert names["early"](names["Later"]()) == 1
    with pytest.raises(TypeCheckError, match="Later"):
        names["early"](3)
