"""One training run in several processes, through JAX's multi-process runtime."""
