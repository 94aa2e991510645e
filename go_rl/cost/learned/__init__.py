"""The learned kernel cost model: features, network, training, and the `CostModel` it makes."""
