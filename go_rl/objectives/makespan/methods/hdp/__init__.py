"""Hierarchical device placement (Mirhoseini et al., ICLR 2018)."""
