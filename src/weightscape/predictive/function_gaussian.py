"""The law of the network's outputs under a Gaussian approximation, by linearisation.

    f(x) ~ N(m, S),     m = f(x; μ),     S = J(x) Σ J(x)ᵀ = (Rᵀ Jᵀ)ᵀ (Rᵀ Jᵀ),     Σ = R Rᵀ

The last form is positive semi-definite by construction. Exact where the network is linear in its weights.

Cost: one backward pass for each output of each point; a chunk of points holds its Jacobians, points × outputs ×
weights numbers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import require, require_count, require_type
from weightscape.inference.gaussian import Gaussian
from weightscape.likelihoods import Own
from weightscape.predictive.inputs import network_inputs
from weightscape.predictive.linear_network import LinearNetwork, linear_network
from weightscape.predictive.outputs import pad_rows
from weightscape.predictive.plan import DEFAULT_MEMORY, make_jacobian_plan


class FunctionGaussian(eqx.Module):
    """N(m, S) at each point, in the units the network sees; points are described one by one.

    - `mean`: m.  `covariance`: S, between the outputs at a point.
    - `own`: the likelihood's own parameters at the mean μ.
    """

    mean: Float[Array, "point output"]
    covariance: Float[Array, "point output output"]
    own: Own

    @property
    def variance(self) -> Float[Array, "point output"]:
        """diag S."""
        return jnp.diagonal(self.covariance, axis1=1, axis2=2)


def function_gaussian(
    approximation: Gaussian, x: ArrayLike | list, *, memory: int = DEFAULT_MEMORY
) -> FunctionGaussian:
    """N(m, S) of the outputs at the inputs `x`.

    Arguments:
        approximation: N(μ, Σ) over positions.
        x: inputs in original units, shaped as in training.
        memory: bytes to spend on Jacobians; fewer means smaller chunks of points and the same numbers.

    Example:
    >>> function = function_gaussian(approximation, data.test.x)        # doctest: +SKIP
    >>> function.mean.shape, function.covariance.shape                  # doctest: +SKIP
    ((30, 3), (30, 3, 3))

    """
    network, inputs = linearise(approximation, x, memory=memory, caller="function_gaussian")
    return function_at(network, inputs, memory)


def linearise(
    approximation: Gaussian, x: ArrayLike | list, *, memory: int, caller: str
) -> tuple[LinearNetwork, Float[np.ndarray, "point ..."]]:
    """The linear network and the inputs as it sees them, from checked arguments of `caller`."""
    remedy = "Pass what a Gaussian method's `run` returns; for draws use `predict(draws, x)`."
    asked = f"`approximation` of {caller} must be a Gaussian"
    require_type(isinstance(approximation, Gaussian), asked, type(approximation).__name__, remedy)
    require_count(f"`memory` of {caller}", memory)
    header = approximation.header
    return linear_network(approximation), network_inputs(x, header.example.x, header.scaling, caller=caller)


def function_at(network: LinearNetwork, x: Float[np.ndarray, "point ..."], memory: int) -> FunctionGaussian:
    """N(m, S) at inputs as the network sees them, chunk by chunk."""
    params = jax.eval_shape(network.parameters, network.location).network
    plan = make_jacobian_plan(network.model.network, params, x, row_bytes=network.location.nbytes, memory=memory)
    parts = []
    for points in plan.chunks:
        moments = _moments(network, jnp.asarray(pad_rows(x[points], plan.chunk_size)))
        kept = tuple(np.asarray(array)[: points.stop - points.start] for array in moments)
        _check_finite(kept, points)
        parts.append(kept)
    means, covariances = zip(*parts, strict=True)
    return FunctionGaussian(jnp.asarray(np.concatenate(means)), jnp.asarray(np.concatenate(covariances)), network.own())


@eqx.filter_jit
def _moments(
    network: LinearNetwork, x: Float[Array, "point ..."]
) -> tuple[Float[Array, "point output"], Float[Array, "point output output"]]:
    def at(one: Float[Array, "..."]) -> tuple[Float[Array, " output"], Float[Array, "output output"]]:
        mean, pull_back = jax.vjp(lambda vector: network.outputs(vector, one[None])[0], network.location)
        rows = jax.vmap(lambda unit: pull_back(unit)[0])(jnp.eye(len(mean), dtype=mean.dtype))
        roots = jax.vmap(network.covariance.root_transpose)(rows)
        # In full precision: accelerators round factors of products, and S may be a small number.
        return mean, jnp.matmul(roots, roots.T, precision="highest")

    return jax.vmap(at)(x)


def _check_finite(moments: tuple[np.ndarray, ...], points: slice) -> None:
    broken = sum(int(np.sum(~np.isfinite(array))) for array in moments)
    asked = f"Linearised outputs must be finite at points {points.start} to {points.stop - 1}"
    remedy = "Look at the approximation's `location` and `covariance`."
    require(broken == 0, asked, f"{broken} numbers that are not", remedy)
