"""A plan leaves: it is executed on the devices of this machine."""
