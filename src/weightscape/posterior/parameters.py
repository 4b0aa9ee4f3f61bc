"""What is inferred: the weights, the likelihood's own parameters, and the prior's latent variables."""

from typing import NamedTuple

from weightscape.core.types import Tree


class Parameters(NamedTuple):
    """`network`: the weights.  `likelihood`: its own parameters by name.  `prior`: its latent variables.

    Empty parts hold no leaves. A *position* has the same three parts in unconstrained coordinates.
    """

    network: Tree
    likelihood: Tree
    prior: Tree


Position = Parameters
