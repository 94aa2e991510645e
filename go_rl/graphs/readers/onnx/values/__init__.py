"""Tensors of ONNX while a model is read: their types and values."""
