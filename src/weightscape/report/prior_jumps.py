"""Cauchy output weights: functions that jump, and single units that matter however wide the network is.

With output weights v_j ~ N(0, 1/H) every hidden unit becomes negligible and the sum a Gaussian process. With
v_j ~ Cauchy(1/H) the sum converges too, but a few units stay as large as the whole: where such a unit switches, the
function jumps. The shares v_j² / Σ v_j² then tend to a Poisson–Dirichlet distribution with index ½, whose largest part
has the mean

    E[P_1] = ∫_0^∞ e^{−t} / (e^{−t} + √(π t) erf √t) dt ≈ 0.63.

References: Neal (1996), Bayesian Learning for Neural Networks, section 2.2; Pitman & Yor (1997), The two-parameter
Poisson–Dirichlet distribution, proposition 17 (that at α = ½, θ = 0).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from scipy import integrate
from scipy.special import erf

from weightscape.core import PRNGKey, Tree
from weightscape.likelihoods import Gaussian
from weightscape.networks import MLP
from weightscape.posterior import Model
from weightscape.priors import ByPath, Normal, Prior, StudentT
from weightscape.report.prior_functions import apply_each, draw_lines, largest_share
from weightscape.report.prior_width import label_plainly
from weightscape.report.style import MUTED, canvas, colour, styled

_STEEPNESS = 100.0
"""The scale of first-layer weights: hidden units switch within a hundredth of an input."""


class Jumps(NamedTuple):
    """Functions of wide networks, and the mean share of the largest unit by width; each by kind of output weights."""

    x: Float[np.ndarray, " point"]
    functions: dict[str, Float[np.ndarray, "draw point"]]
    widths: Int[np.ndarray, " width"]
    shares: dict[str, Float[np.ndarray, " width"]]


def study_jumps(key: PRNGKey, widths: Sequence[int], *, num_draws: int = 1000, num_lines: int = 4) -> Jumps:
    """Draw tanh networks with normal and with Cauchy output weights; functions are those of the largest width."""
    study = Jumps(np.linspace(-1, 1, 401), {}, np.array(widths), {})
    network = MLP((max(widths),), "tanh", outputs=1)
    for i, (kind, prior) in enumerate(_output_priors(max(widths)).items()):
        weights = _draw_weights(jax.random.fold_in(key, i), network, prior, num_draws)
        shown = jax.tree.map(lambda leaf: leaf[:num_lines], weights)
        study.functions[kind] = apply_each(network, shown, study.x)
        outgoing = np.asarray(weights["layer1"]["weight"])[:, :, 0]
        # A common factor does not change shares, so the first H units stand for a network of width H.
        study.shares[kind] = np.array([largest_share(outgoing[:, :width]).mean() for width in widths])
    return study


def cauchy_share() -> float:
    """The mean share of the largest unit in the limit of Cauchy output weights."""
    integrand = lambda root: 2 * root / (1 + np.sqrt(np.pi) * root * erf(root) * np.exp(root**2))  # t = root²
    return float(integrate.quad(integrand, 0, 6)[0])


@styled
def plot_jumps(study: Jumps) -> Figure:
    """Functions with normal and with Cauchy output weights, and the share of the largest unit against width."""
    figure, axes = canvas(3, width=3.5, height=3.3)
    for axis, (kind, lines) in zip(axes, study.functions.items(), strict=False):
        draw_lines(axis, study.x, lines)
        axis.set(title=f"{kind}, H = {study.widths[-1]}", xlabel="x")
        axis.locator_params(axis="x", nbins=5)
    for i, (kind, shares) in enumerate(study.shares.items()):
        axes[2].plot(study.widths, shares, "o-", color=colour(i), ms=5, label=f"{kind} weights")
    axes[2].axhline(cauchy_share(), color=MUTED, lw=1.2, ls="--", label="Cauchy, H → ∞")
    axes[2].set(title="largest unit's share", xlabel="width H", xscale="log", ylim=(0, 1.02), ylabel="of Σ v²")
    axes[2].legend(fontsize=8.5)
    label_plainly(axes[2], of_x=True, of_y=False)
    return figure


def _output_priors(width: int) -> dict[str, Prior]:
    return {"normal": Normal(width**-0.5), "Cauchy": StudentT(1.0, 1 / width)}


def _draw_weights(key: PRNGKey, network: MLP, output_prior: Prior, num_draws: int) -> Tree:
    prior = ByPath({"layer0/*": Normal(_STEEPNESS), "layer1/weight": output_prior, "*": Normal(0.1)})
    model = Model(network, Gaussian(1.0), prior)
    return model.sample_prior(key, jnp.zeros((1, 1)), num_draws).parameters.network
