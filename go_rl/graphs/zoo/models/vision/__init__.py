"""Vision models of the zoo."""
