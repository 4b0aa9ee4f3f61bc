"""Networks that widen: how the outputs become normal, and the covariance that of the wide limit.

Given its first hidden layer, a network with normal weights has the covariance

    S(x, x') = σ_b² + σ²/H Σ_j φ(u_j(x)) φ(u_j(x'))

in the next layer, which varies from network to network. With one hidden layer the excess kurtosis of the output is
3 Var S(x, x) / E[S(x, x)]²; with two, the covariance is the average of σ_b² + σ² E[φ(u) φ(v) | S] over networks, and
that of the wide limit has the average of S in place of S. Both differences fall as 1/H.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from weightscape.core import PRNGKey
from weightscape.likelihoods import Gaussian
from weightscape.networks import MLP, activation
from weightscape.networks.dense import apply_dense
from weightscape.posterior import Model
from weightscape.priors import FanInNormal, excess_kurtosis, wide_kernel
from weightscape.priors.wide_limit import arc_cosine, arcsine
from weightscape.report.style import INK, MUTED, canvas, colour, styled

_SCALE, _BIAS_SCALE = 1.6, 0.7
_PAIR = ((1.5, 0.4), (-1.4, -0.5))
"""Two inputs that are nearly opposite, where the covariance at depth two converges most slowly."""

_EXPECTED_PRODUCTS = {"relu": arc_cosine, "erf": arcsine}
_SHOWN_WIDTHS = (1, 4, 64)


class WidthStudy(NamedTuple):
    """What networks drawn at several widths say, by activation where there are two.

    - `outputs`: at one input, of ReLU networks with one hidden layer, in units of their exact standard deviation.
    - `kurtosis`, `expected_kurtosis`: excess kurtosis of the output over drawn networks, and in closed form.
    - `gap`: how far the covariance with two hidden layers is from that of the wide limit, in units of the latter.
    """

    widths: Int[np.ndarray, " width"]
    outputs: dict[int, Float[np.ndarray, " draw"]]
    kurtosis: dict[str, Float[np.ndarray, " width"]]
    expected_kurtosis: dict[str, Float[np.ndarray, " width"]]
    gap: dict[str, Float[np.ndarray, " width"]]


def study_width(key: PRNGKey, widths: Sequence[int], *, num_draws: int = 20_000) -> WidthStudy:
    """Draw networks of these widths from `FanInNormal` and compare them with the wide limit."""
    study = WidthStudy(np.array(widths), {}, {}, {}, {})
    for i, name in enumerate(_EXPECTED_PRODUCTS):
        kernels = []
        for j, width in enumerate(widths):
            outputs, kernel = _draw_networks(jax.random.fold_in(key, len(widths) * i + j), name, width, num_draws)
            kernels.append(kernel)
            if name == "relu" and width in _SHOWN_WIDTHS:
                study.outputs[width] = outputs / np.sqrt(_limit(name, 1)[0, 0])
        study.kurtosis[name] = np.array([_kurtosis(kernel[:, 0, 0]) for kernel in kernels])
        study.expected_kurtosis[name] = np.array([_expected_kurtosis(name, width) for width in widths])
        study.gap[name] = np.array([_gap(name, kernel) for kernel in kernels])
    return study


@styled
def plot_width(study: WidthStudy) -> Figure:
    """Histograms of the output, its excess kurtosis against width, and the gap in covariance at depth two."""
    figure, (left, middle, right) = canvas(3, width=3.5, height=3.4)
    _draw_histograms(left, study.outputs)
    for i, name in enumerate(study.kurtosis):
        middle.plot(study.widths, study.expected_kurtosis[name], color=colour(i), lw=1.2, label=f"{name}: exact, ∝ 1/H")
        middle.plot(study.widths, study.kurtosis[name], "o", color=colour(i), ms=5, label=f"{name}: networks")
        right.plot(study.widths, study.gap[name], "o", color=colour(i), ms=5, label=f"{name}: networks")
    guide = study.gap["relu"][0] * study.widths[0] / study.widths
    right.plot(study.widths, guide, color=MUTED, lw=1.2, ls="--", label="∝ 1/H")
    middle.set(title="one layer: kurtosis", ylabel="excess kurtosis")
    right.set(title="two layers: covariance", ylabel="relative distance from the limit")
    for axis in (middle, right):
        axis.set(xscale="log", yscale="log", xlabel="width H")
        axis.legend(fontsize=8.5)
    return figure


def _draw_histograms(axis: Axes, outputs: dict[int, np.ndarray]) -> None:
    for i, (width, values) in enumerate(outputs.items()):
        axis.hist(
            values, 80, range=(-5, 5), density=True, histtype="step", color=colour(i), lw=1.4, label=f"H = {width}"
        )
    grid = np.linspace(-5, 5, 201)
    axis.plot(grid, norm.pdf(grid), color=INK, lw=1.2, ls="--", label="normal")
    axis.set(title="one layer: output", xlabel="output / standard deviation", yscale="log", ylim=(1e-4, 2))
    axis.set_ylabel("density")
    axis.legend(fontsize=8.5, loc="upper right")


def _draw_networks(
    key: PRNGKey, name: str, width: int, num_draws: int
) -> tuple[Float[np.ndarray, " draw"], Float[Array, "draw 2 2"]]:
    """Outputs at the first input, and S at both, of networks with one hidden layer."""
    x, prior = jnp.array(_PAIR), FanInNormal(_SCALE, _BIAS_SCALE)
    drawn = Model(MLP((width,), name, outputs=1), Gaussian(1.0), prior).sample_prior(key, x, num_draws)
    units = jax.vmap(lambda params: activation(name)(apply_dense(params["layer0"], x)))(drawn.parameters.network)
    return np.asarray(drawn.outputs[:, 0, 0]), _grow(units @ units.swapaxes(1, 2) / width)


def _grow(moment: Array) -> Array:
    return _BIAS_SCALE**2 + _SCALE**2 * moment


def _limit(name: str, depth: int) -> np.ndarray:
    x = jnp.array(_PAIR)
    return np.asarray(wide_kernel(x, x, activation=name, depth=depth, scale=_SCALE, bias_scale=_BIAS_SCALE))


def _kurtosis(variance: Float[Array, " draw"]) -> float:
    return float(3 * jnp.var(variance) / jnp.mean(variance) ** 2)


def _expected_kurtosis(name: str, width: int) -> float:
    x = jnp.array(_PAIR[:1])
    return float(excess_kurtosis(x, width=width, activation=name, scale=_SCALE, bias_scale=_BIAS_SCALE)[0])


def _gap(name: str, kernel: Float[Array, "draw 2 2"]) -> float:
    product = _EXPECTED_PRODUCTS[name](kernel[:, 0, 0], kernel[:, 1, 1], kernel[:, 0, 1])
    limit = _limit(name, 2)[0, 1]
    return float(abs(_grow(jnp.mean(product)) - limit) / limit)
