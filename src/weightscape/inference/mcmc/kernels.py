"""blackjax's kernels and adaptation rules, imported without starting JAX's backend.

blackjax 1.7 computes `jnp.log(2.0)` for a default argument while it is imported. That starts the backend, after
which the number of CPU devices cannot be chosen any more, so NumPy's logarithm stands in during the import.
"""

from unittest import mock

import jax.numpy as jnp
import numpy as np

with mock.patch.object(jnp, "log", np.log):
    from blackjax.adaptation.mass_matrix import welford_algorithm
    from blackjax.adaptation.step_size import dual_averaging_adaptation
    from blackjax.mcmc import hmc, mclmc, nuts
    from blackjax.mcmc.integrators import IntegratorState
    from blackjax.mcmc.metrics import LowRankInverseMassMatrix, default_metric

__all__ = [
    "IntegratorState",
    "LowRankInverseMassMatrix",
    "default_metric",
    "dual_averaging_adaptation",
    "hmc",
    "mclmc",
    "nuts",
    "welford_algorithm",
]
