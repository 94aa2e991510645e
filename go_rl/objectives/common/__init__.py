"""What all objectives share: incumbents, the workspace, the memory allocator."""
