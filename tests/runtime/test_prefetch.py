"""Items are made before they are asked for, in order, in one thread; errors come in their place."""

import threading

import pytest

from go_rl.runtime.prefetch import prefetch


def test_items_keep_their_order_and_are_made_in_one_thread_before_they_are_asked_for():
    made, third = [], threading.Event()

    def items():
        for i in range(5):
            made.append(threading.get_ident())
            if i == 2:
                third.set()
            yield i

    found = prefetch(items(), 2)
    assert next(found) == 0
    assert third.wait(10)
    assert list(found) == [1, 2, 3, 4]
    assert len(set(made)) == 1
    assert made[0] != threading.get_ident()


def test_an_error_comes_behind_the_items_before_it():
    def items():
        yield 1
        raise ValueError("two")

    found = prefetch(items(), 3)
    assert next(found) == 1
    with pytest.raises(ValueError, match="two"):
        next(found)


def test_who_stops_early_waits_for_no_more_than_the_item_being_made():
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    found = prefetch(items(), 4)
    assert next(found) == 0
    found.close()
    count = len(made)
    assert count <= 6
    assert len(made) == count
