"""The same problems for CP-SAT and python-constraint."""
