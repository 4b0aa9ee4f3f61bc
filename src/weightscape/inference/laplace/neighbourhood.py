"""The neighbourhood of a mode: the posterior as a function of the weights that an approximation is over.

    v ↦ θ(v),     θ = μ everywhere but at the free places, where it is v

Everything that a Laplace approximation asks of a posterior is asked here, in flat coordinates: the network's outputs
with the likelihood's own parameters, the log likelihood, and the log prior.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from weightscape.core import Scalar
from weightscape.core.layout import Layout
from weightscape.likelihoods import Own
from weightscape.posterior import Parameters, Position, Posterior


class Neighbourhood(eqx.Module):
    """A posterior around a location.

    - `location`: μ, flat, in the order of `layout`.
    - `free`: the places of the k weights that move; None for all.
    """

    posterior: Posterior
    location: Float[Array, " weight"]
    layout: Layout
    free: Int[Array, " free"] | None = None

    @staticmethod
    def of(posterior: Posterior, position: Position) -> "Neighbourhood":
        """The neighbourhood of a position in which all weights move."""
        layout = Layout.of(position)
        return Neighbourhood(posterior, layout.flatten(position), layout)

    def restricted(self, free: Int[np.ndarray, " free"] | None) -> "Neighbourhood":
        """The same place with only these weights moving."""
        return dataclasses.replace(self, free=None if free is None else jnp.asarray(free))

    def within(self, some: Int[np.ndarray, " some"]) -> "Neighbourhood":
        """The same place with only some of the weights that move here moving: numbers of 0 to k − 1."""
        return self.restricted(some if self.free is None else np.asarray(self.free)[some])

    def numbers(self) -> Int[np.ndarray, " weight"]:
        """Of each place of the flat vector which of the k moving weights it is; −1 where it does not move."""
        if self.free is None:
            return np.arange(self.layout.size)
        numbers = np.full(self.layout.size, -1)
        numbers[np.asarray(self.free)] = np.arange(self.num_free)
        return numbers

    @property
    def num_free(self) -> int:
        """k, how many weights move."""
        return self.layout.size if self.free is None else len(self.free)

    def centre(self) -> Float[Array, " free"]:
        """v at the location."""
        return self.location if self.free is None else self.location[self.free]

    def position(self, v: Float[Array, " free"]) -> Position:
        """The position at v."""
        return self.layout.unflatten(v if self.free is None else self.location.at[self.free].set(v))

    def coordinates(self, v: Float[Array, " free"], x: Float[Array, "point ..."]) -> Float[Array, "point coordinate"]:
        """What the likelihood sees of each point: the network's outputs, then its own parameters name by name."""
        parameters = self.posterior.constrain(self.position(v))
        return joined(self.posterior.model.network.apply(parameters.network, x), parameters.likelihood)

    def split(self, coordinates: Float[Array, "point coordinate"]) -> tuple[Float[Array, "point output"], Own]:
        """The inverse of `coordinates`: outputs and the own parameters by name."""
        shapes = self.posterior.model.likelihood.own_shapes()
        sizes = [int(np.prod(shapes[name])) for name in sorted(shapes)]
        num_outputs = coordinates.shape[1] - sum(sizes)
        parts = jnp.split(coordinates[0, num_outputs:], np.cumsum(sizes)[:-1]) if sizes else []
        own = {name: part.reshape(shapes[name]) for name, part in zip(sorted(shapes), parts, strict=True)}
        return coordinates[:, :num_outputs], own

    def log_likelihood(
        self, v: Float[Array, " free"], x: Array, y: Shaped[Array, "point ..."]
    ) -> Float[Array, " point"]:
        """log p(y_i | θ(v)) of each point, up to the constant of the targets' units."""
        outputs, own = self.split(self.coordinates(v, x))
        return self.posterior.model.likelihood.log_density(outputs, y, own)

    def log_prior(self, v: Float[Array, " free"]) -> Scalar:
        """γ log p(θ) + log |det J| at v."""
        placed = self.posterior.model.place(self.position(v))
        return self.posterior.prior_power * placed.log_prior + placed.log_jacobian

    def log_density(self, v: Float[Array, " free"]) -> Scalar:
        """log p(D, θ) at v."""
        return self.posterior.log_density(self.position(v))

    def parameters(self) -> Parameters:
        """The parameters at the location."""
        return self.posterior.constrain(self.layout.unflatten(self.location))


def joined(outputs: Float[Array, "point output"], own: Own) -> Float[Array, "point coordinate"]:
    """Outputs and, at every point alike, the likelihood's own parameters name by name."""
    flat = [jnp.ravel(own[name]) for name in sorted(own)]
    return jnp.concatenate([outputs, *(jnp.broadcast_to(o[None], (len(outputs), len(o))) for o in flat)], axis=1)
