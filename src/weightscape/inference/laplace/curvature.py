"""Which matrix of second derivatives a Laplace approximation rests on.

    exact Hessian            H = −Σ_i ∇² log p(y_i | θ)
    generalised Gauss–Newton H = Σ_i J_iᵀ F_i F_iᵀ J_i       F_i F_iᵀ the Fisher information of the outputs
    empirical Fisher         H = Σ_i g_i g_iᵀ                g_i = ∇ log p(y_i | θ)

J_i is the Jacobian of the outputs at point i. The last two are sums of outer products of rows, so they are positive
semi-definite everywhere. The Gauss–Newton matrix is the Hessian of the network linearised around the mode (for
likelihoods in their natural form), and exact for linear models. The empirical Fisher is cheap and crude.
"""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float, Shaped

from weightscape.core import registered
from weightscape.core.choices import chosen
from weightscape.inference.laplace.neighbourhood import Neighbourhood


class Curvature(eqx.Module):
    """A choice of H, the curvature of the likelihood."""

    @property
    @abc.abstractmethod
    def noise_power(self) -> int:
        """H falls as σ to this power where σ is the noise of a Gaussian likelihood."""


class RowCurvature(Curvature):
    """H = Σ_i Σ_r (J_iᵀ f_ir)(J_iᵀ f_ir)ᵀ, with f_ir the columns of `factors`."""

    @abc.abstractmethod
    def factors(
        self, around: Neighbourhood, coordinates: Float[Array, "point coordinate"], y: Shaped[Array, "point ..."]
    ) -> Float[Array, "point coordinate factor"]:
        """f_ir in the coordinates that the likelihood sees."""


@registered("inference.GaussNewton")
class GaussNewton(RowCurvature):
    """The generalised Gauss–Newton matrix, with the Fisher information of the likelihood."""

    @property
    def noise_power(self) -> int:
        return 2

    def factors(
        self, around: Neighbourhood, coordinates: Float[Array, "point coordinate"], y: Shaped[Array, "point ..."]
    ) -> Float[Array, "point coordinate factor"]:
        return around.posterior.model.likelihood.information_root(*around.split(coordinates))


@registered("inference.EmpiricalFisher")
class EmpiricalFisher(RowCurvature):
    """The sum of squared gradients of single points."""

    @property
    def noise_power(self) -> int:
        return 4

    def factors(
        self, around: Neighbourhood, coordinates: Float[Array, "point coordinate"], y: Shaped[Array, "point ..."]
    ) -> Float[Array, "point coordinate factor"]:
        def one(row, target):
            outputs, own = around.split(row[None])
            return around.posterior.model.likelihood.log_density(outputs, target[None], own)[0]

        return jax.vmap(jax.grad(one))(coordinates, y)[:, :, None]


@registered("inference.ExactHessian")
class ExactHessian(Curvature):
    """The Hessian itself, which need not be positive definite even at a mode of a finite precision."""

    @property
    def noise_power(self) -> int:
        return 2


CURVATURES = {"gauss_newton": GaussNewton, "fisher": EmpiricalFisher, "hessian": ExactHessian}


def as_curvature(value: Curvature | str) -> Curvature:
    """The curvature of that name, or the object itself."""
    return chosen("`curvature` of Laplace", value, Curvature, CURVATURES)
