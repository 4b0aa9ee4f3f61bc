"""The evidence of several models by several methods, side by side: which width, which prior do the data prefer?

    log p(D | model) = log ∫ p(D | θ, model) p(θ | model) dθ

Each method's own value (Laplace's, a lower bound, exact for neural-linear models) stands beside the one that its draws
weigh to, which is right where the Pareto index says so, and beside the score on rows that were not seen.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from weightscape.core import PRNGKey, Progress, Silent
from weightscape.core.checks import require
from weightscape.core.keys import require_key
from weightscape.data import Batch
from weightscape.draws import Draws
from weightscape.inference import Evidence, LogEvidence, Method, ladder_evidence
from weightscape.posterior import Posterior
from weightscape.predictive import predict_result


class EvidenceRow(NamedTuple):
    """One model under one method.

    - `own`: the method's value of log p(D).  `weighed`: from importance weights, where the method has a density.
    - `test_log_density`: the mean log density of the test rows under the predictive; None without test rows.
    """

    model: str
    method: str
    own: LogEvidence | None
    weighed: Evidence | None
    test_log_density: float | None
    seconds: float


def compare_evidence(
    key: PRNGKey,
    posteriors: Mapping[str, Posterior],
    methods: Mapping[str, Method],
    *,
    test: Batch | None = None,
    num_draws: int = 1000,
    progress: Progress | None = None,
) -> tuple[EvidenceRow, ...]:
    """All methods on all models; the posteriors must be of the same data.

    Example:
    >>> rows = compare_evidence(key, {"narrow": p, "wide": q}, {"Laplace": Laplace()})       # doctest: +SKIP
    """
    require_key(key, "compare_evidence")
    sizes = {posterior.num_points for posterior in posteriors.values()}
    remedy = "Condition every model on the same batch."
    require(len(sizes) == 1, "Models that are compared must have seen the same data", f"{sizes} points", remedy)
    rows = []
    for i, (model, posterior) in enumerate(posteriors.items()):
        for j, (name, method) in enumerate(methods.items()):
            part = jax.random.fold_in(jax.random.fold_in(key, i), j)
            rows.append(_row(part, (model, name), posterior, method, test, num_draws, progress or Silent()))
    return tuple(rows)


def _row(
    key: PRNGKey,
    names: tuple[str, str],
    posterior: Posterior,
    method: Method,
    test: Batch | None,
    num_draws: int,
    progress: Progress,
) -> EvidenceRow:
    key_run, key_draws = jax.random.split(key)
    began = time.monotonic()
    result = method.run(key_run, posterior, progress=progress)
    seconds = time.monotonic() - began
    if isinstance(result, Draws):
        own, weighed = _of_ladder(result), None
    else:
        own, weighed = result.estimate, result.evidence(key_draws, num_draws) if result.is_proper else None
    score = None
    if test is not None and len(test):
        predictive = predict_result(key_draws, result, test.x, num_draws=num_draws)
        score = float(np.mean(np.asarray(predictive.log_density(test.y), np.float64)))
    return EvidenceRow(*names, own, weighed, score, seconds)


def _of_ladder(draws: Draws) -> LogEvidence | None:
    """What a ladder of temperatures says; other chains say nothing."""
    if draws.facts.get("method") != "ParallelTempering":
        return None
    value, error = ladder_evidence(draws)
    return LogEvidence(value, "stepping stones", error)
