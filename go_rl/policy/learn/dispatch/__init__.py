"""Pretraining of a dispatch policy: searches, a cover of their finds, a network that chooses."""
