"""``go-rl zoo ...``: a file for the frozen graphs, and one for the best plans known."""
