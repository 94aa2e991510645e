"""Shapes of ONNX operators, where the file does not contain them."""
