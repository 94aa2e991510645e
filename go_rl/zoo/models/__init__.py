"""Networks in JAX and flax, with abstract arguments, for comparing our costs with XLA's."""

from go_rl.zoo.models.catalogue import MODELS, CatalogueModel

__all__ = ["MODELS", "CatalogueModel"]
