"""Couplings: which target goes with which source.

    x₀ ~ q₀,   x₁ ~ q₁,   (x₀, x₁) ~ π        a joint distribution with these marginals

Every coupling gives a flow from q₀ to q₁. Those that pair what is close have straighter paths that cross less, so the
rates regress on less noise. A coupling of a minibatch orders the targets of one training step.

Reference: Tong et al. (2024), Improving and generalizing flow-based generative models with minibatch optimal transport;
Pooladian et al. (2023), Multisample flow matching.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require_count, require_positive
from weightscape.core.config import registered
from weightscape.core.layout import Layout
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.coupling_assignment import cheapest
from weightscape.flow.coupling_costs import Costs, SquaredDistances
from weightscape.symmetry import Symmetry


class Coupling(eqx.Module):
    """A way to pair sources and targets. It runs inside a compiled step."""

    @abc.abstractmethod
    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        """The targets, in the order and in the equivalent form in which they go with the sources."""

    @abc.abstractmethod
    def bind(self, symmetry: Symmetry, layout: Layout) -> "Coupling":
        """The same for weights of a known symmetry, vectors of which have this layout."""


@registered("flow.Independent")
class Independent(Coupling):
    """Targets as they come."""

    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        del key, sources
        return targets

    def bind(self, symmetry: Symmetry, layout: Layout) -> Coupling:
        del symmetry, layout
        return self


@registered("flow.OptimalTransport")
class OptimalTransport(Coupling):
    """The order of least Σ_i c(x₀ᵢ, x₁ᵢ) among all orders of the targets.

    - `costs`: c; squared distances, or squared geodesics of a manifold.
    """

    costs: Costs = SquaredDistances()

    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        del key
        return targets[cheapest(self.costs.of(sources, targets))]

    def bind(self, symmetry: Symmetry, layout: Layout) -> Coupling:
        del symmetry, layout
        return self


@registered("flow.Entropic")
class Entropic(Coupling):
    """Each source draws its target from its row of the entropic plan.

        P = argmin_P Σ_ij P_ij C_ij + λ P_ij log P_ij,      C_ij = c(x₀ᵢ, x₁ⱼ),      rows and columns of P sum to 1

    - `regularisation`: λ over the mean of C. Near 0 it is optimal transport, large ones make the pairs independent.
    - `num_iterations`: how often Sinkhorn's iteration scales columns and rows; small λ need more.
    - `costs`: c, as in `OptimalTransport`.

    A target may be drawn by several sources, and in the mean it is drawn by one.
    """

    regularisation: Scalar = eqx.field(converter=number, default=0.02)
    num_iterations: int = eqx.field(static=True, default=100)
    costs: Costs = SquaredDistances()

    def __check_init__(self) -> None:
        require_positive("`regularisation` of Entropic", self.regularisation)
        require_count("`num_iterations` of Entropic", self.num_iterations)

    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        return targets[jax.random.categorical(key, self.log_plan(sources, targets), axis=1)]

    def bind(self, symmetry: Symmetry, layout: Layout) -> Coupling:
        del symmetry, layout
        return self

    def log_plan(
        self, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair pair"]:
        """log P; rows sum to 1 to rounding, columns as closely as the iterations bring them."""
        costs = self.costs.of(sources, targets)
        least = jnp.finfo(costs.dtype).tiny
        sharpness = 1 / jnp.maximum(self.regularisation.astype(costs.dtype) * jnp.mean(costs), least)

        def scale(_: Array, log_plan: Array) -> Array:
            log_plan = log_plan - jax.nn.logsumexp(log_plan, axis=0, keepdims=True)
            return log_plan - jax.nn.logsumexp(log_plan, axis=1, keepdims=True)

        return jax.lax.fori_loop(0, self.num_iterations, scale, -costs * sharpness)


@registered("flow.Chained")
class Chained(Coupling):
    """One coupling, and another of what it gives.

    - `first`, `then`: for instance OptimalTransport, then Aligned; `alignment` says when the marginals stay.
    """

    first: Coupling
    then: Coupling

    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        key_first, key_then = jax.random.split(key)
        return self.then.pair(key_then, sources, self.first.pair(key_first, sources, targets))

    def bind(self, symmetry: Symmetry, layout: Layout) -> Coupling:
        return Chained(self.first.bind(symmetry, layout), self.then.bind(symmetry, layout))


def with_costs(coupling: Coupling, costs: Costs) -> Coupling:
    """The coupling with other costs wherever it has some."""
    is_cost = lambda node: isinstance(node, Costs)
    return jax.tree.map(lambda node: costs if is_cost(node) else node, coupling, is_leaf=is_cost)
