"""Neural linear models: features from a trained network, and a Bayesian last layer on top.

    f(x) = φ(x) W,      p(W | D, φ) = N(m, S)

The features φ are those of a point, such as the MAP, and stay fixed; only the last layer is uncertain. Under Gaussian
noise its posterior and its evidence are exact; over classes they are Laplace's at the mode of the last layer. The
prior is the model's own. What is uncertain about the features is not accounted for: `log_evidence` is
log p(y | Φ, σ), that of the last layer given features and noise, and compares layers and priors on one set of features,
not networks.

Reference: Snoek et al. (2015), Scalable Bayesian optimization using deep neural networks; Bishop (2006), Pattern
recognition and machine learning, equations 3.50 to 3.54 and 3.86.
"""

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import InputTypeError, require
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.draws import Draws, best_position
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_run import finished_approximation, keep_approximation, stage
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.gaussian import Blocks, Full, Gaussian
from weightscape.inference.method import Circumstances, DensityMethod, Method, settings
from weightscape.inference.neural_linear.classes import Classification, bernoulli, categorical
from weightscape.inference.neural_linear.conjugate import Powers, Regression, Solved
from weightscape.inference.neural_linear.last_layer import LastLayer, find_last_layer
from weightscape.inference.neural_linear.noise import tuned_noise
from weightscape.inference.point import MAP
from weightscape.likelihoods import Bernoulli, Categorical, as_columns
from weightscape.likelihoods import Gaussian as GaussianNoise
from weightscape.posterior import Parameters, Posterior
from weightscape.priors import Prior


@registered("inference.NeuralLinear")
class NeuralLinear(DensityMethod):
    """The posterior of the last layer given the features of a trained network.

    - `features`: the method that trains the network. `run(..., init=...)` with draws or a `Gaussian` takes their
      features in its place: those of the draw of highest log density, or of the mean.
    - `tune_noise`: whether a noise scale that is inferred is moved from its trained value to the one of largest
      evidence. The result's facts say which it is; either way it is fixed from there on.

    For Gaussian, Categorical and Bernoulli likelihoods, and a prior of the last layer that is Normal, FanInNormal or
    ByPath of them. The result is a `Gaussian` in which all other weights are fixed.
    """

    features: Method = eqx.field(default_factory=MAP)
    tune_noise: bool = eqx.field(static=True, default=False)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Gaussian:
        finished = finished_approximation(key, self, posterior, around)
        if finished is not None:
            return finished
        self._check(posterior)
        began = time.monotonic()
        point = self._point(key, posterior, around)
        fit = _fit_classes if _is_classes(posterior) else self._fit_noise
        made = _gaussian(posterior, fit(posterior, point), {**settings(self), "seconds": time.monotonic() - began})
        keep_approximation(key, self, made, around)
        return made

    def _check(self, posterior: Posterior) -> None:
        """Raise before anything is trained where the last layer cannot be solved for."""
        likelihood = posterior.model.likelihood
        known = isinstance(likelihood, (GaussianNoise, Categorical, Bernoulli))
        asked = "The likelihood of NeuralLinear must be Gaussian, Categorical or Bernoulli"
        require(known, asked, type(likelihood).__name__, "Use Laplace for others.")
        inferred = isinstance(likelihood, GaussianNoise) and isinstance(likelihood.scale, Prior)
        remedy = "Leave it out, or give the noise a prior."
        require(inferred or not self.tune_noise, "`tune_noise` must go with a noise that is inferred", "none", remedy)
        find_last_layer(posterior)

    def _point(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Parameters:
        """The parameters whose features are taken: brought by the user, or trained."""
        if isinstance(around.init, (Draws, Approximation)):
            return _parameters(posterior, around.init)
        trained = self.features.run(
            key,
            posterior,
            init=around.init,
            store=stage(around.store, "features"),
            progress=around.progress,
            resume=around.resume,
        )
        return _parameters(posterior, trained)

    def _fit_noise(self, posterior: Posterior, point: Parameters) -> "Fit":
        """The exact posterior of each output under Gaussian noise."""
        likelihood = posterior.model.likelihood
        assert isinstance(likelihood, GaussianNoise)
        last = _last_layer(posterior, point)
        powers, num_outputs = _powers(posterior), last.weights.shape[1]
        regression = Regression.of(last.features, np.asarray(as_columns(posterior.y), np.float64))
        own = likelihood.scale if not isinstance(likelihood.scale, Prior) else point.likelihood["scale"]
        noise, origin = np.atleast_1d(np.asarray(own, np.float64)), "fixed"
        if isinstance(likelihood.scale, Prior):
            origin = "evidence" if self.tune_noise else "training"
            if self.tune_noise:
                noise = tuned_noise(regression, last.prior_scales, likelihood.scale, noise, powers)
            point = point._replace(likelihood={"scale": jnp.asarray(noise.reshape(own.shape), own.dtype)})
        each = np.broadcast_to(noise, num_outputs)
        solved = [regression.solve(i, each[i], last.prior_scales[:, i], powers) for i in range(num_outputs)]
        shift = 0.0 if posterior.scaling is None else float(posterior.scaling.log_target_scale())
        value = sum(one.log_evidence for one in solved) - powers.likelihood * posterior.num_points * shift
        facts = {"noise": noise.tolist(), "noise_from": origin}
        return Fit(point, list(last.places.T), solved, LogEvidence(value, "exact"), facts)


class Fit(NamedTuple):
    """The last layer, solved: independent blocks of weights with their places, and the evidence of all together."""

    point: Parameters
    places: list[np.ndarray]
    solved: list[Solved]
    estimate: LogEvidence
    facts: dict[str, Any]


def _fit_classes(posterior: Posterior, point: Parameters) -> Fit:
    """Laplace's approximation of all outputs together."""
    last = _last_layer(posterior, point)
    link = bernoulli if isinstance(posterior.model.likelihood, Bernoulli) else categorical
    problem = Classification(last.features, np.asarray(posterior.y), last.prior_scales, link, _powers(posterior))
    solved = problem.solve(last.weights)
    return Fit(point, [last.places.T.ravel()], [solved], LogEvidence(solved.log_evidence, "Laplace"), {})


def _gaussian(posterior: Posterior, fit: Fit, facts: dict[str, Any]) -> Gaussian:
    """N(m, S) over the last layer, with the other weights fixed at the point."""
    layout = Layout.of(position := posterior.unconstrain(fit.point))
    location = np.array(layout.flatten(position))
    for where, solved in zip(fit.places, fit.solved, strict=True):
        location[where] = solved.mean
    covariance = Blocks(
        tuple(_covariance(solved, layout.dtype) for solved in fit.solved), tuple(fit.places), layout.size
    )
    known = Facts(**facts, **fit.facts, evidence_of="the last layer given its features")
    mean = layout.unflatten(jnp.asarray(location))
    return Gaussian.over(posterior, mean, covariance, estimate=fit.estimate, facts=known)


def _covariance(solved: Solved, dtype: np.dtype) -> Full:
    """S from S⁻¹ = RᵀR: its root is R⁻¹."""
    root = solve_triangular(solved.precision_root, np.eye(len(solved.mean)))
    return Full(root.astype(dtype), solved.precision_root.astype(dtype))


def _last_layer(posterior: Posterior, point: Parameters) -> LastLayer:
    return LastLayer.of(posterior, point, Layout.of(posterior.unconstrain(point)))


def _parameters(posterior: Posterior, result: Draws | Approximation) -> Parameters:
    """One point: the draw of highest log density, or the mean of a Gaussian."""
    if isinstance(result, Gaussian):
        return posterior.constrain(result.mean)
    if not isinstance(result, Draws):
        raise InputTypeError(
            f"Features of NeuralLinear must come from draws or a Gaussian, got {type(result).__name__}. "
            "Pass `result.sample(key, num_draws)`, of which the draw of highest log density is taken."
        )
    return posterior.constrain(best_position(result))


def _powers(posterior: Posterior) -> Powers:
    return Powers(float(posterior.likelihood_power), float(posterior.prior_power))


def _is_classes(posterior: Posterior) -> bool:
    return posterior.model.likelihood.task == "classification"
