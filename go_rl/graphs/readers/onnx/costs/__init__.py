"""FLOP and bytes of ONNX operators."""
