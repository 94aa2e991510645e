"""Parts shared by all objectives: incumbents, the workspace, the memory allocator."""
