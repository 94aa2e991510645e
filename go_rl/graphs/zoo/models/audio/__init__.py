"""Audio models of the zoo."""
