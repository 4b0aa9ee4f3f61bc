"""Leaving one out: what draws say of a training point as if they had never seen it, without sampling anew.

    p(y_i | y_−i) ≈ Σ_s w_si p(y_i | θ_s) / Σ_s w_si,        w_si ∝ 1 / p(y_i | θ_s), its largest values smoothed

A draw that fits point i well counts less there. The largest weights are replaced by quantiles of a generalised Pareto
distribution fitted to them (PSIS), whose index k says whether that can be trusted: not above 0.7, as with a point that
the posterior hangs on.

Reference: Vehtari, Gelman and Gabry (2017), Practical Bayesian model evaluation using leave-one-out cross-validation.
"""

from typing import NamedTuple

import numpy as np
from arviz_stats.base import array_stats
from jaxtyping import Float
from scipy.special import logsumexp

from weightscape.core.checks import require, require_type
from weightscape.data import Batch
from weightscape.draws.draws import Draws
from weightscape.draws.lppd import log_likelihoods

_MOST_K = 0.7
_FEWEST_DRAWS = 25
"""Fewer leave no tail to smooth."""


class LeaveOneOut(NamedTuple):
    """log p(y_i | y_−i) of each training point, in original units, and the Pareto index k behind it."""

    log_density: Float[np.ndarray, " point"]
    pareto_k: Float[np.ndarray, " point"]

    @property
    def num_doubtful(self) -> int:
        """How many points have k above 0.7, so that their value cannot be trusted."""
        return int(np.sum(~(self.pareto_k <= _MOST_K)))

    def __str__(self) -> str:
        doubt = f"; {self.num_doubtful} with Pareto k above {_MOST_K}" if self.num_doubtful else ""
        return f"log density {self.log_density.sum():.2f} nats over {len(self.log_density)} points{doubt}"


def leave_one_out(draws: Draws, batch: Batch) -> LeaveOneOut:
    """The log density of each training point under the draws that would remain without it.

    - `draws`: from the posterior itself, without weights.
    - `batch`: the points that the posterior was conditioned on, such as `dataset.train`.

    Example:
    >>> leave_one_out(draws, data.train).log_density.sum()              # doctest: +SKIP

    """
    require_type(isinstance(draws, Draws), "`draws` must be Draws", type(draws).__name__, "Pass a method's draws.")
    remedy = "Pass draws of the posterior itself, such as those of HMC."
    require(draws.log_weights is None, "Draws of leave_one_out must have no weights", "some that have", remedy)
    asked = f"leave_one_out must have at least {_FEWEST_DRAWS} draws"
    require(len(draws) >= _FEWEST_DRAWS, asked, len(draws), "Make more; an ensemble is no posterior.")
    table = log_likelihoods(draws, batch).reshape(len(draws), -1)
    log_weights, pareto_k = array_stats.psislw(table.T)  # of weights 1/p, normalised, a row for each point
    log_density = np.asarray(logsumexp(log_weights + table.T, axis=1))
    return LeaveOneOut(log_density, np.asarray(pareto_k, np.float64))
