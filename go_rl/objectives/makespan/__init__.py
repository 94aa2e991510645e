"""Makespan on connected devices: simulator, bounds, methods, workspace."""
