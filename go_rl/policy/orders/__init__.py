"""Policy of a ring whose weights mix reference orders."""
