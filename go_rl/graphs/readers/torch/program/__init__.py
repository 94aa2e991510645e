"""The program in a ``.pt2`` archive, or of a module: its documents, parsed and checked."""
