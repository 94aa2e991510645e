"""GraphSAGE over the operators of a kernel."""
