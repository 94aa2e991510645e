"""Policies that draw few weights, from which a whole plan follows, by a choice among prototypes."""
