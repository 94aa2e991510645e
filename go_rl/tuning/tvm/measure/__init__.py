"""Building and timing of candidates under TVM, in worker processes or through Ray."""
