"""Cutting a graph into kernels: fusion by priority, what may be fused, kernels as small graphs."""
