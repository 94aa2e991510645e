"""`TrainingIteration`: a training iteration in JAX whose batch can be split into micro-batches."""

from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration

__all__ = ["TrainingIteration"]
