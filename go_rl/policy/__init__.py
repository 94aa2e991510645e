"""The transferable policy: GraphSAGE, segmented recurrent attention, task heads, decoders."""
