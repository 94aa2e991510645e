"""GraphSAGE and segmented recurrent attention over operator graphs."""
