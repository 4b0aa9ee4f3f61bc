"""Several methods' predictions of the same points, side by side: how good each is, and how near to a reference.

Every score has a bootstrap error. What one method is behind the best in NLL has an error of its own, from resamples of
the same points for both: it is smaller than those of the two scores, since hard points are hard for all.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
from jaxtyping import ArrayLike

from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_known
from weightscape.core.keys import require_key
from weightscape.evaluate.nearness import nearness
from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.score_errors import score_differences, score_errors
from weightscape.evaluate.scores import Scores
from weightscape.predictive import Predictive

_CLEAR = 2.0
"""Standard errors from which on a difference counts."""


class Compared(NamedTuple):
    """One method of a comparison.

    - `scores`: with their standard errors.
    - `nearness`: to the reference, by name; empty for the reference itself, and where there is none.
    - `behind`: the NLL less that of the method with the smallest; None for that one.
    """

    scores: Scores
    nearness: Mapping[str, float]
    behind: Measured | None

    @property
    def is_clearly_behind(self) -> bool:
        """Whether another method's NLL is smaller by more than two standard errors of the difference."""
        return self.behind is not None and self.behind.value > _CLEAR * self.behind.standard_error


def compare_predictions(
    key: PRNGKey, predictions: Mapping[str, Predictive], y: ArrayLike | list, *, reference: str | None = None
) -> dict[str, Compared]:
    """Scores of all predictions by name, and their nearness to the one that is called `reference`.

    - `y`: the targets, in original units.

    Example:
    >>> found = compare_predictions(key, {"hmc": exact, "map": quick}, y, reference="hmc")       # doctest: +SKIP
    >>> print(found["map"].scores, found["map"].nearness)                                        # doctest: +SKIP
    """
    require_key(key, "compare_predictions")
    require(len(predictions) > 0, "`predictions` of compare_predictions must hold at least one", 0, "Pass {name: p}.")
    if reference is not None:
        require_known("`reference` of compare_predictions", reference, predictions)
    # One key for all: the same resamples of points for every method.
    key_scores, key_differences = jax.random.split(key)
    scored = {name: score_errors(key_scores, predictive, y) for name, predictive in predictions.items()}
    best = min(scored, key=lambda name: scored[name]["nll"])

    def behind(name: str) -> Measured | None:
        if name == best:
            return None
        found = score_differences(key_differences, predictions[name], predictions[best], y)
        return Measured(found["nll"], found.errors["nll"])

    near = lambda name: {} if reference in (None, name) else nearness(predictions[name], predictions[reference])
    return {name: Compared(scores, near(name), behind(name)) for name, scores in scored.items()}
