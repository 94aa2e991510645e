"""StableHLO, as text or bytecode: modules that JAX or other tools exported."""
