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
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.stats import norm

from weightscape.core import PRNGKey, Tree
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
    """Draw networks of these widths from `FanInNormal` and compare them with the wide limit.

    Hidden units are independent, so the first H units of the widest networks are those of a network of width H.
    """
    weights = _draw_weights(key, max(widths), num_draws)
    study = WidthStudy(np.array(widths), {}, {}, {}, {})
    for name in _EXPECTED_PRODUCTS:
        units = activation(name)(_inputs_of_units(weights))
        kernels = [_covariance(units[:, :, :width]) for width in widths]
        study.kurtosis[name] = np.array([_kurtosis(kernel[:, 0, 0]) for kernel in kernels])
        study.expected_kurtosis[name] = np.array([_expected_kurtosis(name, width) for width in widths])
        study.gap[name] = np.array([_gap(name, kernel) for kernel in kernels])
    units, deviation = activation("relu")(_inputs_of_units(weights))[:, 0], np.sqrt(_limit("relu", 1)[0, 0])
    for width in (widths[0], widths[len(widths) // 3], widths[-1]):
        study.outputs[width] = _outputs(weights, units, width) / deviation
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
    guide = np.mean((study.gap["relu"] * study.widths)[-3:]) / study.widths
    right.plot(study.widths, guide, color=MUTED, lw=1.2, ls="--", label="∝ 1/H")
    middle.set(title="one layer: kurtosis", ylabel="excess kurtosis")
    right.set(title="two layers: covariance", ylabel="relative distance from the limit")
    for axis in (middle, right):
        axis.set(xscale="log", yscale="log", xlabel="width H")
        axis.legend(fontsize=8)
    for axis, of_x in ((left, False), (middle, True), (right, True)):
        label_plainly(axis, of_x=of_x, of_y=True)
    return figure


def label_plainly(axis: Axes, *, of_x: bool, of_y: bool) -> None:
    """Write 0.01 and not a formula at the decades of logarithmic axes: formulas are off in this style."""
    for asked, line in ((of_x, axis.xaxis), (of_y, axis.yaxis)):
        if asked:
            line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            line.set_minor_formatter(NullFormatter())


def _draw_histograms(axis: Axes, outputs: dict[int, np.ndarray]) -> None:
    for i, (width, values) in enumerate(outputs.items()):
        axis.hist(
            values, 60, range=(-5, 5), density=True, histtype="step", color=colour(i), lw=1.4, label=f"H = {width}"
        )
    grid = np.linspace(-5, 5, 201)
    axis.plot(grid, norm.pdf(grid), color=INK, lw=1.2, ls="--", label="normal")
    axis.set(title="one layer: output", xlabel="output / standard deviation", yscale="log", ylim=(3e-4, 4))
    axis.set_ylabel("density")
    axis.legend(fontsize=8, loc="upper right")


def _draw_weights(key: PRNGKey, width: int, num_draws: int) -> Tree:
    model = Model(MLP((width,), "relu", outputs=1), Gaussian(1.0), FanInNormal(_SCALE, _BIAS_SCALE))
    return model.sample_prior(key, jnp.array(_PAIR), num_draws).parameters.network


def _outputs(weights: Tree, units: Float[Array, "draw unit"], width: int) -> Float[np.ndarray, " draw"]:
    """The outputs of the first `width` units, with output weights of the scale that this width has."""
    factor = np.sqrt(units.shape[1] / width)
    products = units[:, :width] * weights["layer1"]["weight"][:, :width, 0]
    return np.asarray(weights["layer1"]["bias"][:, 0] + factor * jnp.sum(products, axis=1))


def _inputs_of_units(weights: Tree) -> Float[Array, "draw 2 unit"]:
    x = jnp.array(_PAIR)
    return jax.vmap(lambda params: apply_dense(params, x))(weights["layer0"])


def _covariance(units: Float[Array, "draw 2 unit"]) -> Float[Array, "draw 2 2"]:
    """S at both inputs, of each network."""
    return _grow(units @ units.swapaxes(1, 2) / units.shape[2])


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
    """|E G(S) − G(E S)| / G(E S) for G(S) = σ_b² + σ² E[φ(u) φ(v) | S]."""
    grown = lambda matrix: _grow(_EXPECTED_PRODUCTS[name](matrix[0, 0], matrix[1, 1], matrix[0, 1]))
    mean = jnp.asarray(_limit(name, 1))
    limit, slope = jax.value_and_grad(grown)(mean)
    # E S is known, so the linear part of G has no share in the difference; without it the noise is far smaller.
    linear = jnp.sum(slope[None] * (kernel - mean[None]), axis=(1, 2))
    return float(abs(jnp.mean(jax.vmap(grown)(kernel) - linear) - limit) / limit)
