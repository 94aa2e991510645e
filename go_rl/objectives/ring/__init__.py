"""Pipeline over a ring of chips: simulator, bounds, methods, workspace."""
