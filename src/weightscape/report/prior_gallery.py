"""The gallery of priors: what priors over weights say about functions, before any data.

Functions and class probabilities drawn from priors; networks that widen into a Gaussian process, and those that do
not; what a prior does to an outlying weight, and to a small one.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from weightscape.core import PRNGKey
from weightscape.likelihoods import Categorical
from weightscape.networks import MLP
from weightscape.posterior import Model
from weightscape.priors import (
    HalfNormal,
    Hierarchical,
    Horseshoe,
    Laplace,
    Normal,
    Prior,
    RealPrior,
    ScaleMixture,
    StudentT,
)
from weightscape.report.numbers import percent, shown
from weightscape.report.prior_classes import draw_classes, plot_classes
from weightscape.report.prior_functions import DrawnFunctions, draw_functions, plot_functions
from weightscape.report.prior_jumps import cauchy_share, plot_jumps, study_jumps
from weightscape.report.prior_shrinkage import plot_pull, plot_sparsity, study_pull, study_sparsity
from weightscape.report.prior_width import plot_width, study_width
from weightscape.report.report import Picture, Table

_ACTIVATIONS = ("tanh", "relu", "sigmoid", "sin")
_REACH = 4.0


class Gallery(NamedTuple):
    """What is found in one sentence, a row of numbers for each prior, and the pictures."""

    finding: str
    table: Table
    pictures: tuple[Picture, ...]
    result: dict[str, dict[str, float]]


def gallery_priors() -> dict[str, Prior]:
    """The priors whose functions are shown, each over all weights of the network."""
    return {
        "Normal": Normal(1.0),
        "Laplace": Laplace(1.0),
        "Student-t (3)": StudentT(3.0, 1.0),
        "Cauchy": StudentT(1.0, 1.0),
        "mixture": ScaleMixture((3.0, 0.1), (0.1, 0.9)),
        "horseshoe": Horseshoe(0.1),
        "hierarchical": Hierarchical(HalfNormal(1.0)),
    }


def draw_gallery(key: PRNGKey) -> Gallery:
    """Draw the whole gallery."""
    key_functions, key_classes, key_width, key_jumps = jax.random.split(key, 4)
    drawn = draw_functions(key_functions, gallery_priors(), _ACTIVATIONS, x=np.linspace(-_REACH, _REACH, 161))
    result = {name: _numbers(drawn, name) for name in drawn.outputs}
    pictures = (
        _functions(drawn),
        _classes(key_classes),
        _width(key_width),
        _jumps(key_jumps),
        _pull(),
        _sparsity(),
    )
    return Gallery(_finding(result), _table(result), pictures, result)


def _numbers(drawn: DrawnFunctions, name: str) -> dict[str, float]:
    heights = {choice: np.abs(lines).max(axis=1) for choice, lines in drawn.outputs[name].items()}
    low, high = np.quantile(heights["tanh"], [0.05, 0.95])
    return {
        "height, tanh": float(np.median(heights["tanh"])),
        "height, relu": float(np.median(heights["relu"])),
        "tallest / lowest": float(high / low),
        "largest unit": float(drawn.largest_share[name].mean()),
    }


def _table(result: Mapping[str, Mapping[str, float]]) -> Table:
    """Heights are medians of max |f|; tallest to lowest is the ratio of their 95 % and 5 % quantiles for tanh."""
    columns = ("prior", *next(iter(result.values())))
    rows = tuple(
        (name, *(percent(value) if column == "largest unit" else shown(value) for column, value in numbers.items()))
        for name, numbers in result.items()
    )
    return Table("Functions drawn from priors: height, and share of the largest unit", columns, rows)


def _finding(result: Mapping[str, Mapping[str, float]]) -> str:
    normal, cauchy = (percent(result[name]["largest unit"]) for name in ("Normal", "Cauchy"))
    return (
        f"Of 50 hidden units the largest has {normal} of the squared output weights under a normal prior and {cauchy} "
        f"under a Cauchy prior, where it keeps {percent(cauchy_share())} however wide the network is."
    )


def _functions(drawn: DrawnFunctions) -> Picture:
    caption = (
        "Four networks from each prior, with 50 hidden units. A row has the same weights in every panel: the "
        "activation alone makes another prior over functions. Each panel has its own vertical range."
    )
    return Picture("prior-functions", "Functions drawn from priors", caption, plot_functions(drawn))


def _classes(key: PRNGKey) -> Picture:
    model = lambda name, scale: Model(MLP((50,), name, outputs=3), Categorical(3), Normal(scale))
    drawn = draw_classes(
        key,
        {
            "tanh, σ = 0.3": model("tanh", 0.3),
            "tanh, σ = 1": model("tanh", 1.0),
            "tanh, σ = 3": model("tanh", 3.0),
            "relu, σ = 1": model("relu", 1.0),
        },
    )
    sure = {name: percent(value) for name, value in drawn.confidence.items()}
    caption = (
        "Five networks from each normal prior over weights, with two inputs and three classes. The wider the prior, "
        f"the surer its networks: averaged over the panels the largest probability is {sure['tanh, σ = 0.3']} with "
        f"σ = 0.3 and {sure['tanh, σ = 3']} with σ = 3."
    )
    return Picture("prior-classes", "Class probabilities drawn from priors", caption, plot_classes(drawn))


def _width(key: PRNGKey) -> Picture:
    caption = (
        "Normal weights of variance σ²/H. With one hidden layer the covariance is that of the limit at every width and "
        "the excess kurtosis falls as 1/H; with two, the covariance itself converges, at the same rate."
    )
    figure = plot_width(study_width(key, (1, 2, 4, 8, 16, 32, 64)))
    return Picture("prior-width", "The wide limit is a Gaussian process", caption, figure)


def _jumps(key: PRNGKey) -> Picture:
    caption = (
        "Steep tanh units. With normal output weights no unit matters in a wide network and functions are rough "
        "everywhere; with Cauchy weights a few units make nearly all of the function, and it jumps where they switch."
    )
    figure = plot_jumps(study_jumps(key, (4, 16, 64, 256, 1024)))
    return Picture("prior-jumps", "Cauchy weights give jumps", caption, figure)


def _pull() -> Picture:
    priors: dict[str, RealPrior] = {
        "Normal(1)": Normal(1.0),
        "Laplace(0.7)": Laplace(0.7),
        "Student-t (3)": StudentT(3.0, 1.0),
        "Cauchy": StudentT(1.0, 1.0),
    }
    caption = (
        "One weight θ, observed as y with noise of standard deviation 1. A normal prior takes half of y however large "
        "it is; a Laplace prior takes a constant; heavy tails let a weight go that is clearly large."
    )
    return Picture("prior-outlier", "The pull on an outlying weight", caption, plot_pull(study_pull(priors)))


def _sparsity() -> Picture:
    caption = (
        "One weight under Laplace(0.8). For small y the mode is exactly zero; the posterior has a corner there, but "
        "its mean is elsewhere, and no draw from it is ever zero."
    )
    figure = plot_sparsity(study_sparsity())
    return Picture("prior-sparsity", "A sparse mode, and a posterior that is not", caption, figure)
