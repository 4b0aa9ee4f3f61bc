"""What a prior does to one weight: the pull on an outlier, and a mode that is sparser than its posterior."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from weightscape.priors import Laplace, RealPrior, shrinkage, soft_threshold
from weightscape.report.style import ALEATORIC, EPISTEMIC, MUTED, canvas, colour, styled

_NOISE = 1.0


class Pull(NamedTuple):
    """E[θ | y] at observations y ~ N(θ, 1), by prior."""

    y: Float[np.ndarray, " observation"]
    means: dict[str, Float[np.ndarray, " observation"]]


class Sparsity(NamedTuple):
    """Mode and mean of θ given y ~ N(θ, 1) under a Laplace prior, and the whole posterior at one `observed` y."""

    y: Float[np.ndarray, " observation"]
    mode: Float[np.ndarray, " observation"]
    mean: Float[np.ndarray, " observation"]
    observed: float
    theta: Float[np.ndarray, " weight"]
    density: Float[np.ndarray, " weight"]


def study_pull(priors: Mapping[str, RealPrior], *, reach: float = 12.0) -> Pull:
    """Posterior means under each of the named priors, for y up to `reach`."""
    y = np.linspace(0, reach, 121)
    return Pull(y, {name: np.asarray(shrinkage(prior, jnp.asarray(y), _NOISE).mean) for name, prior in priors.items()})


def study_sparsity(scale: float = 0.8, *, observed: float = 1.0) -> Sparsity:
    """Mode, mean and posterior under Laplace(`scale`)."""
    y, theta, prior = np.linspace(-4, 4, 161), np.linspace(-3, 4, 701), Laplace(scale)
    mean = np.asarray(shrinkage(prior, jnp.asarray(y), _NOISE).mean)
    log_evidence = float(shrinkage(prior, jnp.array([observed]), _NOISE).log_evidence[0])
    log_prior = np.asarray(jax.vmap(prior.log_density)(jnp.asarray(theta)))
    density = np.exp(log_prior + norm.logpdf(observed, theta, _NOISE) - log_evidence)
    mode = np.asarray(soft_threshold(jnp.asarray(y), scale, _NOISE))
    return Sparsity(y, mode, mean, observed, theta, density)


@styled
def plot_pull(pull: Pull) -> Figure:
    """Posterior means (left) and what the prior takes off, y − E[θ | y] (right), against y."""
    figure, (left, right) = canvas(2, width=4.6, height=3.5)
    left.plot(pull.y, pull.y, color=MUTED, lw=1.2, ls="--", label="no shrinkage")
    for i, (name, mean) in enumerate(pull.means.items()):
        left.plot(pull.y, mean, color=colour(i), label=name)
        right.plot(pull.y, pull.y - mean, color=colour(i), label=name)
    left.set(xlabel="observed y", ylabel="E[θ | y]", title="posterior mean")
    right.set(xlabel="observed y", ylabel="y − E[θ | y]", title="pull of the prior")
    left.legend()
    return figure


@styled
def plot_sparsity(found: Sparsity) -> Figure:
    """Mode and mean against y (left), and the posterior at the observed y with both marked (right)."""
    figure, (left, right) = canvas(2, width=4.6, height=3.5)
    left.plot(found.y, found.y, color=MUTED, lw=1.2, ls="--", label="no shrinkage")
    left.plot(found.y, found.mode, color=ALEATORIC, label="mode (MAP)")
    left.plot(found.y, found.mean, color=EPISTEMIC, label="posterior mean")
    left.set(xlabel="observed y", ylabel="estimate of θ", title="estimates under Laplace")
    left.legend()
    _draw_posterior(right, found)
    return figure


def _draw_posterior(axis: Axes, found: Sparsity) -> None:
    at = lambda values: float(np.interp(found.observed, found.y, values))
    axis.fill_between(found.theta, found.density, color=EPISTEMIC, alpha=0.25, lw=0)
    axis.plot(found.theta, found.density, color=EPISTEMIC, label="p(θ | y)")
    tall, label = float(found.density.max()), f"mode {at(found.mode):.2f}, yet P(θ = 0) = 0"
    axis.vlines(at(found.mode), 0, tall, color=ALEATORIC, lw=1.8, label=label)
    axis.vlines(at(found.mean), 0, tall, color=EPISTEMIC, lw=1.8, ls="--", label=f"mean {at(found.mean):.2f}")
    axis.set(xlabel="θ", ylabel="density", title=f"posterior at y = {found.observed:g}")
    axis.set_ylim(0, 1.5 * tall)
    axis.legend(loc="upper right", fontsize=9)
