"""Metanetworks: networks that read and write the weights of networks, and commute with their symmetries."""

from weightscape.metanet.adam import AdamWithWarmup, adam_with_warmup
from weightscape.metanet.channel_scaling import ChannelScaling
from weightscape.metanet.cost import Cost, cost
from weightscape.metanet.features import Features, Place
from weightscape.metanet.metanet import Metanet, Reader
from weightscape.metanet.probes import Probes
from weightscape.metanet.sizes import Sizes
from weightscape.metanet.training import Trained, train

__all__ = [
    "AdamWithWarmup",
    "ChannelScaling",
    "Cost",
    "Features",
    "Metanet",
    "Place",
    "Probes",
    "Reader",
    "Sizes",
    "Trained",
    "adam_with_warmup",
    "cost",
    "train",
]
