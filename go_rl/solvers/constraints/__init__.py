"""Constraints of the user: domains, and samples that keep them."""
