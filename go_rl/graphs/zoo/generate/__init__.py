"""Generated training graphs: random networks from a seeded grammar of architectures."""
