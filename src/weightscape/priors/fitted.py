"""A learned prior: any density over the parameter tree that can be evaluated and sampled.

p(θ) = q(θ),     q fitted to draws of another task, to a population of networks, or written by hand
"""

from collections.abc import Callable

from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.prior import NOTHING, RealPrior


class Fitted(RealPrior):
    """The density q as a prior.

    - `density`: θ ↦ log q(θ), normalised.
    - `sampler`: (key, params_like) ↦ θ ~ q.

    Both may be methods of a fitted object: its arrays then travel with the prior, and can be differentiated.
    """

    density: Callable[[Tree], Scalar]
    sampler: Callable[[PRNGKey, Tree], Tree]

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        return self.density(params)

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        return self.sampler(key, params_like)
