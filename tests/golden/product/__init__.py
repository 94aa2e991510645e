"""The one door from the golden results to go_rl: no other module of ``tests/golden`` imports it.

Whoever renames or moves something in go_rl changes these modules and nothing else there; the names
that cases carry stay as they are.
"""
