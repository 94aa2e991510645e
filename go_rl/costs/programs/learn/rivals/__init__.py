"""Rivals of CDMPP: what else learns the seconds of tensor programs, from the same examples."""
