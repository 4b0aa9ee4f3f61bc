"""Networks: pure functions over parameter trees."""

from weightscape.networks.activations import ACTIVATIONS, activation
from weightscape.networks.mlp import MLP
from weightscape.networks.network import Function, Network

__all__ = ["ACTIVATIONS", "MLP", "Function", "Network", "activation"]
