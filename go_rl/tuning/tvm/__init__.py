"""TVM on this machine's processor. Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``."""
