"""Scores with their standard errors, and differences of scores with theirs.

Errors come from the bootstrap over points, with the same resamples for all scores. A difference of two methods on the
same points is judged by its own error, `score_differences`, not by those of the two.
"""

from collections.abc import Mapping

from jaxtyping import ArrayLike

from weightscape.core import PRNGKey
from weightscape.core.checks import require
from weightscape.evaluate.bootstrap import NUM_RESAMPLES
from weightscape.evaluate.resampling import Difference, Means, Measured, measure
from weightscape.evaluate.scores import Scores, named_scores
from weightscape.predictive import Predictive


def score_errors(
    key: PRNGKey, predictive: Predictive, y: ArrayLike | list, *, num_resamples: int = NUM_RESAMPLES
) -> Scores:
    """The scores of `scores(predictive, y)`, with standard errors in `errors`.

    Example:
    >>> print(score_errors(jax.random.key(0), predictive, y))           # doctest: +SKIP
    accuracy 0.9667 ± 0.033  nll 0.1021 ± 0.041  brier 0.05 ± 0.03  ece 0.04 ± 0.02
    """
    statistics = _statistics("score_errors", predictive, y)
    return _scores(statistics, measure(key, "score_errors", list(statistics.values()), num_resamples))


def score_differences(
    key: PRNGKey,
    first: Predictive,
    second: Predictive,
    y: ArrayLike | list,
    *,
    num_resamples: int = NUM_RESAMPLES,
) -> Scores:
    """The scores of `first` less those of `second` on the same points, with the standard errors of the differences."""
    caller, remedy = "score_differences", "Compare predictions of the same targets."
    named = [named_scores(caller, predictive) for predictive in (first, second)]
    came = f"a {first.task} and a {second.task}"
    require(named[0] is named[1], "Predictions that are compared must be of one task", came, remedy)
    ours, theirs = (_statistics(caller, predictive, y) for predictive in (first, second))
    pairs = [Difference(ours[name], theirs[name]) for name in ours]
    return _scores(ours, measure(key, caller, pairs, num_resamples))


def _statistics(caller: str, predictive: Predictive, y: ArrayLike | list) -> dict[str, Means]:
    named, checked = named_scores(caller, predictive), predictive.check_targets(y)
    return {name: Means(score, score.columns(predictive, checked)) for name, score in named.items()}


def _scores(names: Mapping[str, Means], measured: list[Measured]) -> Scores:
    by_name = dict(zip(names, measured, strict=True))
    values, errors = ({name: one[i] for name, one in by_name.items()} for i in (0, 1))
    return Scores(values, errors)
