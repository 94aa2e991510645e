"""How weights are stored: headers of safetensors, quantised matrices."""
