"""LiteRT (TensorFlow Lite) models: FlatBuffers whose tensors all have static shapes."""
