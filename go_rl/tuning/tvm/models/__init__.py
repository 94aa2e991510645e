"""Models that can be handed to TVM: ONNX files, JAX functions, programs of XLA."""
