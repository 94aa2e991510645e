"""Recommenders and graph networks of the zoo."""
