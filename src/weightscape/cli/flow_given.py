"""`weightscape flow --given`: what a flow with conditions draws when it is asked for a loss."""

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
    """A loss that was asked for, and the mean and deviation of those that the networks have."""

    asked: float
    mean: float
    deviation: float


def answered_losses(
    key: PRNGKey, flow: PopulationFlow, posterior: Posterior, train: Draws, num_draws: int
) -> dict[str, Answer]:
    """Networks drawn for a low, a middle and a high quantile of the training losses, and what they lose."""
    seen, answers = mean_losses(posterior, train), {}
    for each, (name, share) in zip(jax.random.split(key, len(_SHARES)), _SHARES.items(), strict=True):
        asked = float(np.quantile(seen[np.isfinite(seen)], share))
        found = mean_losses(posterior, flow.given(asked).sample(each, num_draws))
        answers[name] = Answer(asked, float(np.mean(found)), float(np.std(found)))
    return answers


def answers_table(name: str, answers: dict[str, Answer]) -> Table:
    """The losses that were asked for, beside those that came."""
    rows = tuple((which, *map(shown, answer)) for which, answer in answers.items())
    return Table(f"{name}: losses on the training rows", ("networks", "asked for", "mean", "deviation"), rows)
