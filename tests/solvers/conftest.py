"""Shared by the solver's tests."""

from __future__ import annotations
