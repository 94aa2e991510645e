"""Functions that train: policies, predictors and models of programs."""
