"""Seconds of tensor programs from their compact ASTs: CDMPP, and the data that it and its rivals
learn from."""
