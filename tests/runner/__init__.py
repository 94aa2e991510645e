"""Runner of many trials or cases: chosen by name or share, on processes, resumed from a file.

`tests.counted` runs its suites with it, `tests.mutation` its mutants, `tests.golden` its cases.
"""
