"""How a run predicts: by its draws, or by the density that they came from where that is the better way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from weightscape.draws import Draws
from weightscape.inference import LINEARISED, load_approximation
from weightscape.predictive import Predictive, predict, predict_result


class Forecast(NamedTuple):
    """Predictions at inputs in original units, and in words how they come about."""

    at: Callable[[Any], Predictive]
    how: str


def forecast(folder: Path, draws: Draws) -> Forecast:
    """How the run in `folder` predicts."""
    if not draws.facts.get(LINEARISED, False):
        return Forecast(lambda x: predict(draws, x), "by the networks drawn")
    gaussian = load_approximation(folder)
    # A key of its own for functions: predictions of the same row are the same each time.
    at = lambda x: predict_result(jax.random.key(0), gaussian, x)
    return Forecast(at, "by the network linearised around the mode")
