"""A model is a network, a likelihood and a prior: everything but the data.

p(y, θ | x) = p(y | f(x; θ)) p(θ)
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require, require_count, require_type, shape_of
from weightscape.core.compiler import require_right_sums
from weightscape.core.keys import require_key
from weightscape.core.types import PRNGKey
from weightscape.data import Batch
from weightscape.likelihoods import Likelihood
from weightscape.networks import Network
from weightscape.posterior.joint import Joint, Placed
from weightscape.posterior.parameters import Parameters, Position
from weightscape.posterior.posterior import Posterior
from weightscape.priors import NOTHING, Coordinates, Prior

_EXAMPLE_ROWS = 16
"""Rows of the data that a posterior's draws carry: the inputs at which chains are compared."""


class PriorPredictive(NamedTuple):
    """Draws from the prior: parameters, the network's outputs, and targets, each with a leading draw axis."""

    parameters: Parameters
    outputs: Float[Array, "draw point output"]
    y: Shaped[Array, "draw point ..."]


class Model(Joint):
    """Network × likelihood × prior.

    Example:
    >>> from weightscape import likelihoods, networks, priors
    >>> model = Model(networks.MLP(hidden=(8,)), likelihoods.Gaussian(scale=0.5), priors.Normal(scale=1.0))
    """

    network: Network
    likelihood: Likelihood
    prior: Prior

    def __check_init__(self):
        for part, kind in ((self.network, Network), (self.likelihood, Likelihood), (self.prior, Prior)):
            remedy = f"Pass Model(network, likelihood, prior); see `weightscape.{kind.__name__.lower()}s`."
            asked = f"`{kind.__name__.lower()}` of Model must be a {kind.__name__}"
            require_type(isinstance(part, kind), asked, type(part).__name__, remedy)

    def bind(self, example: Batch) -> "Model":
        """This model with the network's output size read off the example's targets."""
        num_outputs = self.likelihood.num_outputs(example.y)
        bound = Model(self.network.bind(num_outputs), self.likelihood, self.prior)
        made = jax.eval_shape(
            lambda key, x: bound.network.apply(bound.network.init(key, x), x), jax.random.key(0), example.x[:1]
        )
        wanted = (1, num_outputs)
        asked = f"Outputs of the network for {type(self.likelihood).__name__} must have shape {wanted}"
        require(shape_of(made) == wanted, asked, shape_of(made), "Change the network's last layer or the likelihood.")
        return bound

    def condition(self, batch: Batch) -> Posterior:
        """The posterior given the data, in original units; the network's output size is bound here."""
        remedy = "Pass `dataset.train` or `Batch(x, y)`."
        require_type(isinstance(batch, Batch), "`batch` of condition must be a Batch", type(batch).__name__, remedy)
        require_right_sums(len(batch))
        spread = np.unique(np.linspace(0, len(batch) - 1, _EXAMPLE_ROWS).astype(int))
        example = Batch(batch.x[spread], batch.y[spread], batch.scaling)
        x, y = batch.x, batch.y.astype(batch.x.dtype) if self.likelihood.task == "regression" else batch.y
        if batch.scaling is not None:
            x, y = batch.scaling.inputs(x), batch.scaling.targets(y)
        self.likelihood.check_targets(y)
        one = jnp.ones((), x.dtype)
        return Posterior(self.bind(example), x, y, batch.scaling, example, one, one)

    def sample_position(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Position:
        key_init, key_prior, key_own = jax.random.split(key, 3)
        like = jax.eval_shape(self.network.init, key_init, x)
        network, latent = self.prior.sample_coordinates(key_prior, like)
        shapes = self.likelihood.own_shapes()
        own = {
            name: prior.sample_coordinates(jax.random.fold_in(key_own, i), jnp.zeros(shapes[name], x.dtype)).params
            for i, (name, prior) in enumerate(self.likelihood.own_priors().items())
        }
        return Position(network, own, latent)

    def start_position(self, key: PRNGKey, x: Float[Array, "point ..."]) -> Position:
        network, latent = self.prior.coordinates(self.network.init(key, x))
        own = {name: jnp.zeros(shape, x.dtype) for name, shape in self.likelihood.own_shapes().items()}
        return Position(network, own, latent)

    def place(self, position: Position) -> Placed:
        network = self.prior.constrain(Coordinates(position.network, position.prior))
        log_prior = self.prior.log_density(network.params, network.latent)
        log_jacobian, own = network.log_jacobian, {}
        for name, prior in self.likelihood.own_priors().items():
            placed = prior.constrain(Coordinates(position.likelihood[name], NOTHING))
            own[name] = placed.params
            log_prior = log_prior + prior.log_density(placed.params)
            log_jacobian = log_jacobian + placed.log_jacobian
        return Placed(Parameters(network.params, own, network.latent), log_prior, log_jacobian)

    def unplace(self, parameters: Parameters) -> Position:
        network, latent = self.prior.coordinates(parameters.network, parameters.prior)
        own = {
            name: prior.coordinates(parameters.likelihood[name]).params
            for name, prior in self.likelihood.own_priors().items()
        }
        return Position(network, own, latent)

    def parameters_like(self, x: Float[Array, "point ..."]) -> Parameters:
        return jax.eval_shape(lambda key, x: self.place(self.start_position(key, x)).parameters, jax.random.key(0), x)

    def sample_prior(self, key: PRNGKey, x: Float[Array, "point ..."], num_draws: int) -> PriorPredictive:
        """Networks, functions and targets drawn from the prior at the inputs `x`, in the units the network sees."""
        require_key(key, "sample_prior")
        require_count("`num_draws` of sample_prior", num_draws)
        return _sample_prior(self, jax.random.split(key, num_draws), jnp.asarray(x))


@eqx.filter_jit
def _sample_prior(model: Model, keys: Array, x: Float[Array, "point ..."]) -> PriorPredictive:
    def one(key):
        key_position, key_targets = jax.random.split(key)
        parameters = model.place(model.sample_position(key_position, x)).parameters
        outputs = model.network.apply(parameters.network, x)
        return PriorPredictive(
            parameters, outputs, model.likelihood.sample(key_targets, outputs, parameters.likelihood)
        )

    return jax.vmap(one)(keys)
