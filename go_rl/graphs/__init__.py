"""Operator graphs: read from models, kept in the zoo, cut into kernels."""
