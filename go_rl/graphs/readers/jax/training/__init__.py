"""Training iterations in JAX: gradients, updates, micro-batches."""
