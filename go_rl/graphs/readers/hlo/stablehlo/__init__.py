"""StableHLO texts: modules that JAX or other tools exported."""
