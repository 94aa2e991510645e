"""Transfer learning across heterogeneous features (Verma et al. 2023): pruned data, joint features
of network and hardware, and the tuner that learns from them."""
