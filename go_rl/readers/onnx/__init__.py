"""ONNX files."""
