"""The evidence log p(D): what a model as a whole says about the data.

    p(D) = ∫ p(D | θ) p(θ) dθ = E_q[w],      w = p(D, θ) / q(θ)

Methods with a density give a value of their own (`LogEvidence`: exact, Laplace's, or a lower bound). Draws from any
density q give an estimate whose error can be judged (`Evidence`): log of the mean weight, which is unbiased for p(D).
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from arviz_stats.base import array_stats
from jaxtyping import Float

from weightscape.core import registered
from weightscape.core.checks import require


@registered("inference.LogEvidence")
@dataclasses.dataclass(frozen=True)
class LogEvidence:
    """A method's own value of log p(D) in nats.

    - `kind`: "exact", "Laplace", "lower bound", "stepping stones" or "annealed".
    - `standard_error`: of its Monte-Carlo average, 0 where there is none.
    """

    value: float
    kind: str
    standard_error: float = 0.0

    def __str__(self) -> str:
        error = f" ± {self.standard_error:.2g}" if self.standard_error else ""
        return f"log p(D) {_SIGNS.get(self.kind, '≈')} {self.value:.3f}{error} nats ({self.kind})"


_SIGNS = {"exact": "=", "lower bound": "≥"}


_FEWEST_DRAWS = 50
"""Where fewer draws count, the tail that matters has not been seen and its index says nothing."""


class Evidence(NamedTuple):
    """log p(D) from importance weights.

    - `value`, `standard_error`: in nats; the error is that of the logarithm, to first order.
    - `effective_sample_size`: (Σw)² / Σw², a count.  `efficiency`: its share of the draws.
    - `pareto_k`: the tail index of the weights. Above 0.7 the estimate and its error cannot be trusted, nor where
      fewer than 50 draws count: `is_trusted`.
    """

    value: float
    standard_error: float
    effective_sample_size: float
    efficiency: float
    pareto_k: float

    @property
    def is_trusted(self) -> bool:
        """Whether the weights have a tail that averages out, and enough draws count."""
        return self.pareto_k < 0.7 and self.effective_sample_size >= _FEWEST_DRAWS

    def __str__(self) -> str:
        trust = "" if self.is_trusted else ", not to be trusted"
        shares = f"efficiency {self.efficiency:.1%}, Pareto k {self.pareto_k:.2f}{trust}"
        return f"log p(D) = {self.value:.3f} ± {self.standard_error:.2g} nats ({shares})"


def importance_evidence(log_weights: Float[np.ndarray, " draw"]) -> Evidence:
    """The evidence from log w of independent draws."""
    log_weights = np.asarray(log_weights, np.float64)
    remedy = "Check the densities behind them."
    broken = int(np.sum(np.isnan(log_weights) | (log_weights == np.inf)))
    require(broken == 0, "Log weights must be finite", f"{broken} that are not", remedy)
    require(len(log_weights) > 1, "Evidence must come from at least 2 draws", len(log_weights), "Draw more.")
    largest = log_weights.max()
    require(bool(np.isfinite(largest)), "Some weight must be above zero", "none", remedy)
    weights = np.exp(log_weights - largest)
    mean = weights.mean()
    size = weights.sum() ** 2 / (weights**2).sum()
    error = weights.std(ddof=1) / (mean * np.sqrt(len(weights)))
    return Evidence(
        float(largest + np.log(mean)), float(error), float(size), float(size / len(weights)), tail_index(log_weights)
    )


def _tail_size(num_draws: int) -> int:
    """How many of the largest weights are looked at."""
    return max(1, math.ceil(min(0.2 * num_draws, 3 * num_draws**0.5)))


def tail_index(log_weights: Float[np.ndarray, " draw"]) -> float:
    """Pareto k̂ of the largest weights (Vehtari et al. 2024, Pareto smoothed importance sampling)."""
    largest = np.sort(log_weights)[-_tail_size(len(log_weights)) :]
    if np.ptp(log_weights) < 0.01 or np.ptp(largest) == 0:  # equal weights, but for rounding, have no tail
        return -np.inf
    with np.errstate(all="ignore"):  # a tail that is far too long overflows on the way to a large index
        return float(array_stats.psislw(-log_weights)[1])  # it takes minus the logs, as of likelihoods left out
