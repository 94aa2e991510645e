"""Counted suites: many trials of one kind each, run to a full count by ``make test-counted``.

``python -m tests.counted run`` from the root of the project; `tests.runner.suite` says what a
suite is, `tests.counted.suites` lists them.
"""
