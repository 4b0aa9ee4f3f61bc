"""Importance weights: draws of an approximation q, made to stand for the posterior.

    E[f(θ) | D] ≈ Σ_i w_i f(θ_i),      w_i ∝ p(D, θ_i) / q(θ_i),      θ_i ~ q

Draws of a density carry both of its logarithms, so weighing them costs nothing. How many draws then count is the
effective sample size (Σ w)² / Σ w², and its share of all draws the efficiency. Where it is low, a few draws decide all
averages, and draws that nobody made would decide more: weights cannot mend such an approximation.

Reference: Owen (2013), Monte Carlo theory, methods and examples, sections 9.2 and 9.3.
"""

import dataclasses
import math

import numpy as np

from weightscape.core.checks import InputError, require, require_fraction, require_type
from weightscape.draws import Draws
from weightscape.inference import Evidence, importance_evidence

_FEWEST_DRAWS = 50


def weighted(draws: Draws, *, least_efficiency: float = 0.01) -> Draws:
    """The same draws with `log_weights` = log p(D, θ) − log q(θ), which predictions and scores then heed.

    - `draws`: what `sample` of an approximation returned.
    - `least_efficiency`: raise where the effective sample size is a smaller share of the draws than this; also where
      it is below 50, with which no average is known.

    Facts get the `efficiency` and `pareto_k`, the tail index of the weights, None where they have no tail. Above 0.7
    averages converge slowly, and their apparent errors are too small.

    Example:
    >>> corrected = weighted(approximation.sample(key, 4000))  # doctest: +SKIP
    >>> predictive = predict(corrected, data.test.x)           # doctest: +SKIP
    """
    require_fraction("`least_efficiency` of weighted", least_efficiency)
    log_weights = _log_weights(draws)
    found = importance_evidence(log_weights.ravel())
    _require_enough(found, len(draws), least_efficiency)
    tail = found.pareto_k if math.isfinite(found.pareto_k) else None
    facts = draws.facts.plus(efficiency=found.efficiency, pareto_k=tail)
    return dataclasses.replace(draws, log_weights=log_weights, facts=facts)


def _log_weights(draws: Draws) -> np.ndarray:
    remedy = "Pass what `sample` of an approximation returns."
    require_type(isinstance(draws, Draws), "`draws` of weighted must be Draws", type(draws).__name__, remedy)
    if draws.log_proposal is None:
        raise InputError(f"`draws` of weighted must know the density they came from, got no `log_proposal`. {remedy}")
    unknown = int(np.sum(np.isnan(draws.log_density)))
    remedy = "Pass the posterior when loading an approximation, so that its draws know their density."
    require(unknown == 0, "`draws` of weighted must know log p(D, θ)", f"NaN in {unknown} of them", remedy)
    return np.asarray(draws.log_density, np.float64) - np.asarray(draws.log_proposal, np.float64)


def _require_enough(found: Evidence, num_draws: int, least_efficiency: float) -> None:
    came = f"an efficiency of {found.efficiency:.2g}: {found.effective_sample_size:.3g} of {num_draws} draws count"
    remedy = "Train the approximation for longer, or correct it by moves of HMC (`moved`) or by annealing (`annealed`)."
    enough = found.efficiency >= least_efficiency
    require(enough, f"Draws must weigh with an efficiency of at least {least_efficiency:g}", came, remedy)
    remedy = f"Make more draws. {remedy}"
    enough = found.effective_sample_size >= _FEWEST_DRAWS
    require(enough, f"At least {_FEWEST_DRAWS} of weighted draws must count", came, remedy)
