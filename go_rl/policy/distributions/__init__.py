"""Distributions that decoders share, and what they read of an encoded graph."""
