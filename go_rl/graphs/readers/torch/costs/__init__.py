"""Cost rules of PyTorch's operators."""
