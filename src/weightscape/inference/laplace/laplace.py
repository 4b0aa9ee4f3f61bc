"""Laplace's approximation: a Gaussian whose precision is the curvature at a mode.

    q = N(μ, (H + P)⁻¹),     log p(D) ≈ log p(D, μ) + (d/2) log 2π − ½ log |H + P|

μ is a mode of the posterior over positions, H the curvature of the likelihood there and P the prior's precision. It is
exact for linear-Gaussian models, and local: it knows one mode, and only its bottom.

References: MacKay (1992); Daxberger et al. (2021), Laplace redux.
"""

import dataclasses
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core import InputTypeError, PRNGKey, Scalar, registered
from weightscape.core.checks import require, require_count
from weightscape.core.choices import HAS_NAMES
from weightscape.core.facts import Facts
from weightscape.draws import Draws, best_position, point
from weightscape.inference.approximation import LINEARISED, Approximation
from weightscape.inference.approximation_run import finished_approximation, keep_approximation, stage
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.gaussian import Blocks, Covariance, Gaussian
from weightscape.inference.laplace.curvature import Curvature, RowCurvature, as_curvature
from weightscape.inference.laplace.information import Information, Precision
from weightscape.inference.laplace.marginal import LaplaceEvidence, is_centred_normal, log_evidence
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.polish import polished
from weightscape.inference.laplace.prior_precision import prior_precision
from weightscape.inference.laplace.structures import Structure, as_structure, default_structure
from weightscape.inference.laplace.tuning import EvidenceTuning, tune
from weightscape.inference.laplace.weights import Weights, as_weights
from weightscape.inference.method import Circumstances, DensityMethod, Init, Method, settings
from weightscape.inference.point import MAP
from weightscape.inference.start import require_gradient
from weightscape.posterior import Posterior


@registered("inference.Laplace")
class Laplace(DensityMethod):
    """A Gaussian around a mode.

    - `structure`: what is kept of the curvature: "full", "by_layer", "kronecker", "low_rank", "diagonal" or an object;
      None takes all of it for up to 1,500 weights and Kronecker factors beyond.
    - `curvature`: "gauss_newton", "fisher", "hessian" or an object.
    - `weights`: "all", "last_layer", or a pattern of paths such as "layer1/*".
    - `mode`: the method that finds μ. Draws that are passed as `init` are taken as they are, the one of highest
      density: so a point that was found elsewhere can be brought.
    - `polish`: steps of L-BFGS from what `mode` found to the mode itself; none for a point that was brought.
    - `tuning`: scales that the evidence chooses, after or during training.
    """

    structure: Structure | None = eqx.field(default=None, converter=as_structure, metadata={HAS_NAMES: True})
    curvature: Curvature = eqx.field(default="gauss_newton", converter=as_curvature, metadata={HAS_NAMES: True})
    weights: Weights = eqx.field(default="all", converter=as_weights, metadata={HAS_NAMES: True})
    mode: Method = eqx.field(default_factory=MAP)
    polish: int = eqx.field(static=True, default=500)
    tuning: EvidenceTuning | None = None

    def __check_init__(self):
        require_count("`polish` of Laplace", self.polish, least=0)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        require_gradient(posterior, "Laplace")
        finished = finished_approximation(key, self, posterior, around)
        if finished is not None:
            return finished
        began = time.monotonic()
        expansion = self._expand(posterior, self._mode(key, posterior, around.init, around, 0))
        if self.tuning is not None:
            expansion = self._tuned(key, expansion, self.tuning, around)
        gaussian = self._gaussian(expansion, time.monotonic() - began)
        keep_approximation(key, self, gaussian, around, posterior)
        return gaussian

    def _mode(self, key: PRNGKey, posterior: Posterior, start: Init, around: Circumstances, i: int) -> Draws:
        """Draws whose best one is μ: those that were brought, or what `mode` finds in round i."""
        if i == 0 and isinstance(start, Draws):
            return start
        store = stage(around.store, f"mode-{i}")
        key, progress = jax.random.fold_in(key, i), around.progress
        found = self.mode.run(key, posterior, init=start, store=store, progress=progress, resume=around.resume)
        if not isinstance(found, Draws):
            raise InputTypeError(f"`mode` of Laplace must give a point, got {type(found).__name__}. Use MAP().")
        return point(posterior, polished(posterior, best_position(found), self.polish)) if self.polish else found

    def _tuned(
        self, key: PRNGKey, expansion: "_Expansion", tuning: EvidenceTuning, around: Circumstances
    ) -> "_Expansion":
        """The mode under scales that the evidence chose; between rounds it is sought anew."""
        factors: dict[str, float] = {}
        for i in range(1, tuning.rounds + 1):
            tuned = tune(LaplaceEvidence(expansion.around, expansion.information, self.curvature), tuning)
            factors = {name: factors.get(name, 1.0) * factor for name, factor in tuned.factors.items()}
            if i == tuning.rounds:
                expansion = expansion.under(tuned.posterior, tuned.information)
            else:
                here = point(tuned.posterior, expansion.around.layout.unflatten(expansion.around.location))
                expansion = self._expand(tuned.posterior, self._mode(key, tuned.posterior, here, around, i))
        return expansion._replace(notes={**expansion.notes, "tuned": factors})

    def _expand(self, posterior: Posterior, found: Draws) -> "_Expansion":
        whole = Neighbourhood.of(posterior, best_position(found))
        around = whole.restricted(self.weights.places(whole))
        structure = self.structure or default_structure(self.curvature, around.num_free)
        information, notes = structure.fit(self.curvature, around)
        return _Expansion(around, structure, information, {**notes, "structure": type(structure).__name__})

    def _gaussian(self, expansion: "_Expansion", seconds: float) -> Gaussian:
        around, prior = expansion.around, prior_precision(expansion.around, expansion.structure)
        _require_positive_definite(expansion.information, prior)
        covariance, evidence, distance = _solve(around, expansion.information, prior)
        found = {
            "distance_to_mode": float(distance),
            LINEARISED: isinstance(self.curvature, RowCurvature),
            "seconds": seconds,
            "complete": True,
        }
        known, whole = {**settings(self), **expansion.notes, **found}, covariance
        if around.free is not None:
            whole = Blocks((covariance,), (around.free,), around.layout.size)
        estimate = None
        if around.free is None or is_centred_normal(around, prior):
            estimate = LogEvidence(float(evidence), "Laplace")
        mean = around.layout.unflatten(around.location)
        return Gaussian.over(around.posterior, mean, whole, estimate=estimate, facts=Facts(**known))


class _Expansion(NamedTuple):
    """The posterior around a mode, to second order: the information there, in a structure."""

    around: Neighbourhood
    structure: Structure
    information: Information
    notes: dict[str, Any]

    def under(self, posterior: Posterior, information: Information) -> "_Expansion":
        """The same mode under other scales."""
        around = dataclasses.replace(self.around, posterior=posterior)
        return self._replace(around=around, information=information)


def _require_positive_definite(information: Information, prior: Precision) -> None:
    """Raise with the smallest eigenvalue where H + P has one that is not positive."""
    least = float(_least(information, prior))
    asked = "The curvature of the posterior at the mode must be positive definite"
    remedy = 'Train longer, use curvature "gauss_newton", or a prior that curves downwards (a normal one).'
    require(least > 0, asked, f"a smallest eigenvalue of {least:.3g}", remedy)


@eqx.filter_jit
def _least(information: Information, prior: Precision) -> Scalar:
    return information.least(prior)


@eqx.filter_jit
def _solve(around: Neighbourhood, information: Information, prior: Precision) -> tuple[Covariance, Scalar, Scalar]:
    """Σ = (H + P)⁻¹, the evidence, and the Newton decrement.

    The last, √(gᵀ Σ g), is how far the mode of the quadratic model is, in standard deviations: small at a mode.
    """
    covariance = information.covariance(prior)
    gradient = jax.grad(around.log_density)(around.centre())
    decrement = jnp.sqrt(jnp.sum(covariance.root_transpose(gradient) ** 2))
    return covariance, log_evidence(around, information, prior), decrement
