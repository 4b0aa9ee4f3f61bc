"""Pseudo-BMA: weights from log densities of new points, in the place of log evidences.

    w_k ∝ exp(Σ_i l_ki),        l_ki = log p_k(y_i)                                                     pseudo-BMA
    w_k = E_α[ exp(n Σ_i α_i l_ki) / Σ_j exp(n Σ_i α_i l_ji) ],        α ~ Dirichlet(1, …, 1)         pseudo-BMA+

The sum over n points is uncertain, and its exponential the more so; the Bayesian bootstrap of pseudo-BMA+ averages over
that, and keeps weights away from 0 and 1 until the points have spoken. As their number grows both choose one model,
where `stacking_weights` goes on to mix.

Reference: Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions,
sections 3.3 and 3.4.
"""

import jax
import numpy as np
from jaxtyping import ArrayLike, Float
from scipy.special import softmax

from weightscape.core import PRNGKey
from weightscape.core.checks import require_count
from weightscape.core.keys import require_key
from weightscape.evaluate.stacking import log_density_table

NUM_RESAMPLES = 2000
"""A weight is known within 1/(2 √2000), about 0.01."""


def pseudo_bma_weights(log_densities: ArrayLike | list) -> Float[np.ndarray, " model"]:
    """Weights in proportion to the density of all points together; they sum to one.

    - `log_densities`: log p_k(y_i), of shape (model, point), of points that no model was fitted to.
    """
    return softmax(log_density_table("pseudo_bma_weights", log_densities).sum(axis=1))


def pseudo_bma_plus_weights(
    key: PRNGKey, log_densities: ArrayLike | list, *, num_resamples: int = NUM_RESAMPLES
) -> Float[np.ndarray, " model"]:
    """Pseudo-BMA weights averaged over the Bayesian bootstrap of the points; they sum to one.

    - `log_densities`: as for `pseudo_bma_weights`.
    """
    require_key(key, "pseudo_bma_plus_weights")
    require_count("`num_resamples` of pseudo_bma_plus_weights", num_resamples)
    table = log_density_table("pseudo_bma_plus_weights", log_densities)
    num_points = table.shape[1]
    # On the host: a program would be compiled for every number of points.
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    alpha = generator.dirichlet(np.ones(num_points), size=num_resamples)
    totals = num_points * np.sum(alpha[:, None, :] * table[None], axis=2)
    return softmax(totals, axis=1).mean(axis=0)
