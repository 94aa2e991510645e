"""Sharing rows among threads."""

import pytest

from go_rl.runtime.threads import on_threads


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
@pytest.mark.parametrize("threads", [None, 1, 3, 20])
def test_every_row_is_worked_on_once(rows, threads):
    done: list[int] = []
    on_threads(done.extend, rows, threads)
    assert sorted(done) == list(range(rows))


def test_what_a_thread_raises_is_raised():
    def work(rows: range) -> None:
        if 5 in rows:
            raise ValueError("row 5")

    with pytest.raises(ValueError, match="row 5"):
        on_threads(work, 8, 3)
