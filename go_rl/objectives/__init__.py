"""Objectives, one folder each: simulator, bounds, methods and workspace."""
