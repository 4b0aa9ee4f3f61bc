"""The loss of a network on data: the mean negative log likelihood.

loss(θ) = −(1/N) Σ_i log p(y_i | f(x_i; θ))
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped

from weightscape.core.checks import InputTypeError, require_count
from weightscape.core.types import Scalar, Tree
from weightscape.data import Batch
from weightscape.posterior import Model, Parameters, Posterior
from weightscape.priors import NOTHING


class Loss(eqx.Module):
    """The mean negative log likelihood of a posterior's data as a function of the weights; made by `loss_of`.

    - `chunk_size`: points that the network sees at once, also for gradients.

    It takes the network's own tree, or `Parameters` where the likelihood has parameters too.
    """

    posterior: Posterior
    chunk_size: int = eqx.field(static=True)

    def __call__(self, params: Tree) -> Scalar:
        parameters = params if isinstance(params, Parameters) else Parameters(params, {}, NOTHING)
        x, y = self.posterior.x, self.posterior.y
        whole = len(x) // self.chunk_size * self.chunk_size
        chunks = (rows[:whole].reshape(-1, self.chunk_size, *rows.shape[1:]) for rows in (x, y))
        # Kept for the backward pass are the inputs of each chunk, not its activations.
        of_chunk = jax.checkpoint(lambda chunk: self._total(parameters, *chunk))
        log_likelihood = jnp.sum(jax.lax.map(of_chunk, tuple(chunks)))
        if whole < len(x):
            log_likelihood += self._total(parameters, x[whole:], y[whole:])
        return -log_likelihood / len(x)

    def _total(self, parameters: Parameters, x: Shaped[Array, "point ..."], y: Shaped[Array, "point ..."]) -> Scalar:
        part = dataclasses.replace(self.posterior, x=x, y=y)
        return jnp.sum(part.pointwise_log_likelihood(parameters))


def loss_of(source: Posterior | Model, batch: Batch | None = None, *, chunk_size: int = 1024) -> Loss:
    """The loss of a posterior or a model.

    - `batch`: other data, in original units; None takes those of the posterior. A posterior sees them in its own
      scaling, a model in that of the batch.

    Example:
    >>> from weightscape import data, likelihoods, networks, priors
    >>> model = Model(networks.MLP(hidden=(4,)), likelihoods.Categorical(3), priors.Normal(1.0))
    >>> loss = loss_of(model, data.load("iris").train)
    """
    require_count("`chunk_size` of loss_of", chunk_size)
    if isinstance(source, Posterior):
        return Loss(source if batch is None else _with_data(source, batch), chunk_size)
    if batch is None:
        raise InputTypeError("`batch` of loss_of for a Model must be a Batch, got None. Pass `dataset.train`.")
    return Loss(source.condition(batch), chunk_size)


def _with_data(posterior: Posterior, batch: Batch) -> Posterior:
    """The posterior with other data in place of its own, seen in its own scaling."""
    regression = posterior.model.likelihood.task == "regression"
    x, y = batch.x, batch.y.astype(batch.x.dtype) if regression else batch.y
    if posterior.scaling is not None:
        x, y = posterior.scaling.inputs(x), posterior.scaling.targets(y)
    posterior.model.likelihood.check_targets(y)
    return dataclasses.replace(posterior, x=x, y=y)
