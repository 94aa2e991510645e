"""The transferable policy: GraphSAGE, segmented recurrent attention, decision heads, decoders."""
