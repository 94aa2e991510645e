"""Pretraining of a policy of prototypes: searches, a cover of finds, a network that chooses."""
