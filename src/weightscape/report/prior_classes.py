"""Class probabilities drawn from priors, over a plane of two inputs.

A prior that looks vague over weights can be certain over classes: with wide weights nearly every drawn network is sure
of a class nearly everywhere.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from weightscape.core import InputTypeError, PRNGKey
from weightscape.likelihoods import ClassificationLikelihood, Likelihood
from weightscape.posterior import Model
from weightscape.report.class_map import Plane
from weightscape.report.style import colour, mix, styled

_SIDE = 60
_REACH = 3.0


class DrawnClasses(NamedTuple):
    """Class probabilities on a square grid of points, by name of the model."""

    grid: Plane
    probabilities: dict[str, Float[np.ndarray, "draw point class"]]

    @property
    def confidence(self) -> dict[str, float]:
        """The mean of the largest class probability over draws and points, by name of the model."""
        return {name: float(values.max(axis=2).mean()) for name, values in self.probabilities.items()}


def draw_classes(key: PRNGKey, models: Mapping[str, Model], *, num_draws: int = 5) -> DrawnClasses:
    """Class probabilities of networks drawn from the prior of each named model."""
    grid = _square()
    probabilities = {}
    for i, (name, model) in enumerate(models.items()):
        likelihood = _over_classes(model.likelihood)
        outputs = model.sample_prior(jax.random.fold_in(key, i), jnp.asarray(grid.points), num_draws).outputs
        probabilities[name] = np.asarray(jax.vmap(likelihood.probabilities)(outputs), float)
    return DrawnClasses(grid, probabilities)


@styled
def plot_classes(drawn: DrawnClasses) -> Figure:
    """A row of panels for each model, a panel for each draw; mixed colours are mixed probabilities."""
    rows, num_draws = list(drawn.probabilities), len(next(iter(drawn.probabilities.values())))
    figure = Figure(figsize=(1.75 * num_draws, 1.75 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), num_draws, squeeze=False)
    for i, row in enumerate(rows):
        for axis, probabilities in zip(axes[i], drawn.probabilities[row], strict=True):
            colours = [colour(j) for j in range(probabilities.shape[1])]
            side = round(len(probabilities) ** 0.5)
            image = mix(probabilities, colours).reshape(side, side, 3)
            axis.imshow(image, extent=drawn.grid.extent, origin="lower", alpha=0.8)
            axis.set(xticks=[], yticks=[])
        axes[i, 0].set_ylabel(row, fontsize=9.5)
    return figure


def _square() -> Plane:
    side = np.linspace(-_REACH, _REACH, _SIDE, dtype=np.float32)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return Plane(points, (-_REACH, _REACH, -_REACH, _REACH))


def _over_classes(likelihood: Likelihood) -> ClassificationLikelihood:
    if not isinstance(likelihood, ClassificationLikelihood):
        raise InputTypeError(
            f"Models of draw_classes must have a likelihood over classes, got {type(likelihood).__name__}. "
            "Use Categorical or Bernoulli."
        )
    return likelihood
