"""Offsets of buffers in memory."""
