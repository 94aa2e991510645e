"""Cutting a graph into kernels: fusion by priority, and what may be fused."""

from go_rl.kernels.fusion import NO_FUSION, Fuser

__all__ = ["NO_FUSION", "Fuser"]
