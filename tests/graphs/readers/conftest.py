"""Guarded work in this process."""

from importlib import import_module

import pytest

from go_rl.graphs.readers import guarded


@pytest.fixture
def in_process(monkeypatch):
    """The work of the subprocesses that guard users against C++ code, done in this process: fast,
    and type-checked. Starting one takes a second."""

    def work(module, folder, timeout):
        import_module(module).main(folder)
        return ""

    monkeypatch.setattr(guarded, "run_guarded", work)
