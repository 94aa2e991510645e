"""Puts this folder on the import path: tests import their twins as ``reference.<module>``."""
