"""How far a network can be pruned: scores against the share of weights that are kept.

    k = 1, 0.9, …, 0.1, 0.05, 0.01

At each share two predictions are scored: the average over all pruned draws, and the pruned mean network alone. Weights
are scored one by one, which asks for draws that were re-based.

References: Xiao, Liu & Bamler (2023), figure 5; Blundell et al. (2015), Weight uncertainty in neural networks, table 3.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from weightscape.core import PRNGKey
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.data import Batch
from weightscape.draws import Draws
from weightscape.evaluate.comparison import comparison_table
from weightscape.evaluate.errors import accuracy, rmse
from weightscape.evaluate.nll import nll
from weightscape.evaluate.scores import Scores
from weightscape.geometry.lone_network import network_at
from weightscape.geometry.prune import prune
from weightscape.geometry.pruning_scores import PruningScore
from weightscape.geometry.weight_moments import Moments, header_of, moments
from weightscape.inference import Gaussian
from weightscape.inference.as_draws import as_draws
from weightscape.predictive import predict

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01)


class PruningRow(NamedTuple):
    """One share of kept weights.

    - `keep`: the share that was asked for.  `num_kept`: how many weights that is.
    - `samples`, `mean_network`: accuracy (classes) or rmse (numbers), and nll, of each prediction.
    """

    keep: float
    num_kept: int
    samples: Scores
    mean_network: Scores


def pruning_curve(
    key: PRNGKey,
    result: Draws | Gaussian,
    test: Batch,
    *,
    by: PruningScore | None = None,
    shares: Sequence[float] = SHARES,
    num_draws: int = 100,
) -> tuple[PruningRow, ...]:
    """Scores on the rows of `test` for each share of kept weights.

    - `result`: draws, re-based before, or a Gaussian, from which `num_draws` draws are made with `key`.
    - `by`: which weights are kept; `ByStandardDeviation()` where None.

    Example:
    >>> rows = pruning_curve(key, compact(draws), data.test)    # doctest: +SKIP
    >>> print(pruning_text(rows))                               # doctest: +SKIP
    """
    require_key(key, "pruning_curve")
    require(len(shares) > 0, "`shares` of pruning_curve must hold at least one", 0, "Pass shares such as (1.0, 0.5).")
    found = moments(result)
    draws = as_draws(key, result, num_draws)
    position = found.layout.unflatten(jnp.asarray(found.mean, found.layout.dtype))
    mean_network = network_at(header_of(draws), position, Facts(method="mean"))
    return tuple(_row(draws, mean_network, test, share, by, found) for share in shares)


def pruning_text(rows: Sequence[PruningRow]) -> str:
    """The rows as a Markdown table."""
    cells = {
        f"{100 * row.keep:g} % kept": {
            **{f"{name} of samples": value for name, value in row.samples.items()},
            **{f"{name} of mean": value for name, value in row.mean_network.items()},
        }
        for row in rows
    }
    return comparison_table(cells)


def _row(
    draws: Draws, mean_network: Draws, test: Batch, share: float, by: PruningScore | None, found: Moments
) -> PruningRow:
    pruned = prune(draws, share, by=by, found=found)
    lone = prune(mean_network, share, by=by, found=found)
    assert isinstance(pruned.result, Draws) and isinstance(lone.result, Draws)
    return PruningRow(share, pruned.num_kept, _scores(pruned.result, test), _scores(lone.result, test))


def _scores(draws: Draws, test: Batch) -> Scores:
    predictive = predict(draws, test.x)
    if predictive.task == "classification":
        return Scores({"accuracy": accuracy(predictive, test.y), "nll": nll(predictive, test.y)})
    return Scores({"rmse": rmse(predictive, test.y), "nll": nll(predictive, test.y)})
