"""Devices, the links between them, and hardware by name."""
