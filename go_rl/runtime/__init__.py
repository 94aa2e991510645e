"""Worker processes, prefetching, threads, compiled functions, and files of parameters."""
