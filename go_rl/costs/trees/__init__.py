"""Boosted trees as predictors, their files, and ranks of candidates."""
