"""Imitation of good plans by policies of rings."""
