"""The Python face of go_rl; `go_rl` itself offers its functions."""
