"""Scores: the usual numbers about predictions, together.

    classification: accuracy, nll, brier, ece         regression: rmse, nll, crps, coverage_90

Accuracy is larger when better, coverage_90 should be near 0.9, all others are smaller when better. Each has a file of
its own that says exactly what it is.
"""

from collections.abc import Iterator, Mapping

from jaxtyping import ArrayLike

from weightscape.core.checks import require, require_type
from weightscape.evaluate.pointwise import CLASS_SCORES, NUMBER_SCORES, MeanScore
from weightscape.predictive import Predictive


class Scores(Mapping[str, float]):
    """Scores by name; prints as one line.

    - `errors`: their standard errors where these are known, as `score_errors` finds them.
    """

    def __init__(self, values: Mapping[str, float], errors: Mapping[str, float] | None = None):
        self._values = dict(values)
        self.errors: dict[str, float] = dict(errors or {})
        unknown, remedy = sorted(self.errors.keys() - self._values.keys()), "Give errors of these scores only."
        require(not unknown, "`errors` of Scores must belong to its scores", unknown, remedy)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Scores({self._values}, errors={self.errors})" if self.errors else f"Scores({self._values})"

    def __str__(self) -> str:
        return "  ".join(f"{name} {value:.4g}{self._error(name)}" for name, value in self._values.items())

    def _error(self, name: str) -> str:
        return f" ± {self.errors[name]:.2g}" if name in self.errors else ""


def scores(predictive: Predictive, y: ArrayLike | list) -> Scores:
    """The scores of predictions, given what came, in original units."""
    named = named_scores("scores", predictive)
    checked = predictive.check_targets(y)
    return Scores({name: score(predictive, checked) for name, score in named.items()})


def named_scores(caller: str, predictive: Predictive) -> dict[str, MeanScore]:
    """The scores that predictions of this task have, by name; raises where `caller` was given something else."""
    came, remedy = type(predictive).__name__, "Pass `predict(draws, x)`."
    require_type(isinstance(predictive, Predictive), f"Predictions of {caller} must be a Predictive", came, remedy)
    return CLASS_SCORES if predictive.task == "classification" else NUMBER_SCORES
