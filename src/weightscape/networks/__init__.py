"""Networks: pure functions over parameter trees."""

from weightscape.networks.activations import ACTIVATIONS, activation
from weightscape.networks.cnn_lstm import CNNLSTM
from weightscape.networks.convnet import ConvNet
from weightscape.networks.count import parameter_count, widest_bytes
from weightscape.networks.equinox_module import EquinoxNetwork, from_equinox
from weightscape.networks.filter_response import FilterResponseNorm
from weightscape.networks.flax_module import FlaxNetwork, from_flax
from weightscape.networks.linear_call import Handler, LayerCall
from weightscape.networks.linear_layer import (
    LinearLayer,
    bias_from_canonical,
    canonical_bias,
    canonical_bias_indices,
    canonical_indices,
    canonical_weight,
    leaf_from_canonical,
)
from weightscape.networks.linear_layers import LinearLayers, find_linear_layers
from weightscape.networks.lstm import GATES, LSTM
from weightscape.networks.mlp import MLP
from weightscape.networks.network import Function, Network
from weightscape.networks.normalisation import LayerNorm, Normalisation, RMSNorm
from weightscape.networks.p4_convnet import P4ConvNet
from weightscape.networks.pooling import AveragePool, MaxPool, Pool
from weightscape.networks.precision import PRECISIONS, DefaultPrecision, Float32, Half, Precision
from weightscape.networks.resnet import ResNet

__all__ = [
    "ACTIVATIONS",
    "CNNLSTM",
    "GATES",
    "LSTM",
    "MLP",
    "PRECISIONS",
    "AveragePool",
    "ConvNet",
    "DefaultPrecision",
    "EquinoxNetwork",
    "FilterResponseNorm",
    "FlaxNetwork",
    "Float32",
    "Function",
    "Half",
    "Handler",
    "LayerCall",
    "LayerNorm",
    "LinearLayer",
    "LinearLayers",
    "MaxPool",
    "Network",
    "Normalisation",
    "P4ConvNet",
    "Pool",
    "Precision",
    "RMSNorm",
    "ResNet",
    "activation",
    "bias_from_canonical",
    "canonical_bias",
    "canonical_bias_indices",
    "canonical_indices",
    "canonical_weight",
    "find_linear_layers",
    "from_equinox",
    "from_flax",
    "leaf_from_canonical",
    "parameter_count",
    "widest_bytes",
]
