"""`weightscape flow --given`: what a flow with conditions draws when it is asked for a loss."""

import math
from typing import NamedTuple

import jax
import numpy as np

from weightscape.core import PRNGKey
from weightscape.draws import Draws
from weightscape.flow import ByLoss, PopulationFlow, mean_losses
from weightscape.posterior import Posterior
from weightscape.report import Table
from weightscape.report.numbers import shown

CONDITIONS = {"loss": ByLoss}
_SHARES = {"low": 0.1, "middle": 0.5, "high": 0.9}


class Answer(NamedTuple):
    """A loss that was asked for, and the mean and deviation of those that the networks have.

    - `num_not_finite`: how many networks have no finite loss, and are left out; of no others, means are not a number.
    """

    asked: float
    mean: float
    deviation: float
    num_not_finite: int


def answered_losses(
    key: PRNGKey, flow: PopulationFlow, posterior: Posterior, train: Draws, num_draws: int
) -> dict[str, Answer]:
    """Networks drawn for a low, a middle and a high quantile of the training losses, and what they lose."""
    seen, answers = mean_losses(posterior, train), {}
    for each, (name, share) in zip(jax.random.split(key, len(_SHARES)), _SHARES.items(), strict=True):
        asked = float(np.quantile(seen[np.isfinite(seen)], share))
        found = mean_losses(posterior, flow.given(asked).sample(each, num_draws))
        kept = found[np.isfinite(found)]
        moments = (float(np.mean(kept)), float(np.std(kept))) if len(kept) else (math.nan, math.nan)
        answers[name] = Answer(asked, *moments, found.size - len(kept))
    return answers


def answers_table(name: str, answers: dict[str, Answer]) -> Table:
    """The losses that were asked for, beside those that came."""
    rows = tuple((which, *map(shown, answer)) for which, answer in answers.items())
    return Table(
        f"{name}: losses on the training rows", ("networks", "asked for", "mean", "deviation", "not finite"), rows
    )
