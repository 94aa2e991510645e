"""Cutting a graph into kernels: fusion by priority, what may be fused, kernels as small graphs."""

from go_rl.graphs.cutting.fusion import NO_FUSION, Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels

__all__ = ["NO_FUSION", "Fuser", "KernelSet", "cut_kernels", "join_kernels"]
