"""Worker processes, prefetching, threads, compiled kernels, and files of parameters."""
