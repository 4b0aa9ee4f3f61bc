"""The evidence of several models by several methods, side by side: which width, which prior do the data prefer?

    log p(D | model) = log ∫ p(D | θ, model) p(θ | model) dθ

Each method's own value (Laplace's, a lower bound, exact for neural-linear models) stands beside the one that its draws
weigh to, which is right where the Pareto index says so, and beside the score on rows that were not seen. A flow has no
value of its own: what its draws weigh to is its verdict.
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
from weightscape.evaluate.evidence_progress import NamedPhases
from weightscape.flow.correction import weighted
from weightscape.inference import Approximation, Evidence, LogEvidence, Method, ladder_evidence
from weightscape.posterior import Posterior
from weightscape.predictive import Predictive, predict, predict_result

_ANY_EFFICIENCY = 1e-9
"""Weights that can be trusted are used, however small the share of the draws that count."""


class Verdict(NamedTuple):
    """What a method says log p(D) is, in nats, and whether that can be trusted.

    - `kind`: that of `LogEvidence`, or "weighed".
    """

    value: float
    standard_error: float
    kind: str
    is_trusted: bool


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

    @property
    def verdict(self) -> Verdict | None:
        """The method's own value, or where it has none what its draws weigh to; None where there is neither."""
        if self.own is not None:
            return Verdict(self.own.value, self.own.standard_error, self.own.kind, is_trusted=True)
        if self.weighed is not None:
            return Verdict(*self.weighed[:2], "weighed", self.weighed.is_trusted)
        return None


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
    rows, total = [], len(posteriors) * len(methods)
    for i, (model, posterior) in enumerate(posteriors.items()):
        for j, (name, method) in enumerate(methods.items()):
            part = jax.random.fold_in(jax.random.fold_in(key, i), j)
            shown = NamedPhases(f"{len(rows) + 1} of {total}, {model}, {name}", progress or Silent())
            rows.append(_row(part, (model, name), posterior, method, test, num_draws, shown))
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
    row = EvidenceRow(*names, own, weighed, None, seconds)
    if test is None or not len(test):
        return row
    log_density = _predict(key_draws, result, row.verdict, test, num_draws).log_density(test.y)
    return row._replace(test_log_density=float(np.mean(np.asarray(log_density, np.float64))))


def _predict(
    key: PRNGKey, result: Draws | Approximation, verdict: Verdict | None, test: Batch, num_draws: int
) -> Predictive:
    """By draws with their weights where these are what the method says, so that both are of the same posterior."""
    is_weighed = verdict is not None and verdict.kind == "weighed" and verdict.is_trusted
    if isinstance(result, Approximation) and is_weighed:
        return predict(weighted(result.sample(key, num_draws), least_efficiency=_ANY_EFFICIENCY), test.x)
    return predict_result(key, result, test.x, num_draws=num_draws)


def _of_ladder(draws: Draws) -> LogEvidence | None:
    """What a ladder of temperatures says; other chains say nothing."""
    if draws.facts.get("method") != "ParallelTempering":
        return None
    value, error = ladder_evidence(draws)
    return LogEvidence(value, "stepping stones", error)
