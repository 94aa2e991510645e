"""Language models of the zoo."""
