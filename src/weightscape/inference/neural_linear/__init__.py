"""Neural linear models: a Bayesian last layer on trained features."""

from weightscape.inference.neural_linear.neural_linear import NeuralLinear

__all__ = ["NeuralLinear"]
