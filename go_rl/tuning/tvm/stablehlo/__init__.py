"""StableHLO, which JAX functions and XLA's programs become, as TVM's Relax."""
