"""Running LPPD: how the predictive density of some points grows as draws are added.

    lppd_k = Σ_i log( Σ_{s ≤ k} w_s p(y_i | x_i, θ_s) / Σ_{s ≤ k} w_s )

the log pointwise predictive density, larger when better, in the targets' original units; w are importance weights, or
1. Where the curve is flat, more draws change nothing; where chains level off at different heights, each has found only
a part of the posterior.

Reference: Gelman, Hwang & Vehtari (2014), Understanding predictive information criteria, equation 5.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from weightscape.core.checks import require, require_type, shape_of
from weightscape.data import Batch
from weightscape.draws.draws import Draws
from weightscape.draws.streaming import stream
from weightscape.posterior import Joint, Parameters


class RunningLppd(NamedTuple):
    """lppd_k for k = 1, 2, … draws of each chain.

    - `by_chain`: from the first k draws of one chain.
    - `pooled`: from the first k draws of all chains together.
    - `num_points`: how many points the sums run over.
    """

    by_chain: Float[np.ndarray, "chain draw"]
    pooled: Float[np.ndarray, " draw"]
    num_points: int


def running_lppd(draws: Draws, batch: Batch) -> RunningLppd:
    """The log pointwise predictive density of `batch` after each draw, by chain and over all chains.

    - `batch`: points in original units, such as `dataset.test`.

    Example:
    >>> running_lppd(draws, data.test).pooled[-1]                # doctest: +SKIP

    """
    require_type(isinstance(draws, Draws), "`draws` must be Draws", type(draws).__name__, "Pass a method's draws.")
    x, y = _network_rows(draws, batch)
    log_weights = np.zeros((draws.num_chains, draws.num_draws))
    if draws.log_weights is not None:
        log_weights = np.asarray(draws.log_weights, np.float64)
    by_chain, pooled = np.zeros(log_weights.shape), np.zeros(draws.num_draws)
    sums = np.empty((0, 0))
    for points, stretch, log_density in stream(_log_densities, draws.model, draws.params, x, y):
        if stretch.start == 0:
            sums = np.full((draws.num_chains + 1, points.stop - points.start), -np.inf)
        weighted = log_density + log_weights[:, stretch, None]
        running = _accumulate(sums, weighted)
        sums = running[:, -1]
        by_chain[:, stretch] += running[:-1].sum(axis=2)
        pooled[stretch] += running[-1].sum(axis=1)
    totals = _accumulate(np.full((draws.num_chains + 1, 1), -np.inf), log_weights[:, :, None])[:, :, 0]
    unit = 0.0 if draws.scaling is None else float(draws.scaling.log_target_scale())
    return RunningLppd(by_chain - len(x) * (totals[:-1] + unit), pooled - len(x) * (totals[-1] + unit), len(x))


def log_likelihoods(draws: Draws, batch: Batch) -> Float[np.ndarray, "chain draw point"]:
    """log p(y_i | x_i, θ) of every draw at every point of `batch`, in original units and double precision."""
    x, y = _network_rows(draws, batch)
    table = np.zeros((draws.num_chains, draws.num_draws, len(x)))
    for points, stretch, log_density in stream(_log_densities, draws.model, draws.params, x, y):
        table[:, stretch, points] = log_density
    return table - (0.0 if draws.scaling is None else float(draws.scaling.log_target_scale()))


def _accumulate(
    before: Float[np.ndarray, "row point"], terms: Float[np.ndarray, "chain draw point"]
) -> Float[np.ndarray, "row draw point"]:
    """log Σ exp over the draws so far: a row for each chain, and a last one for all chains together."""
    rows = np.concatenate([terms, np.logaddexp.reduce(terms, axis=0, keepdims=True)])
    return np.logaddexp.accumulate(np.concatenate([before[:, None], rows], axis=1), axis=1)[:, 1:]


def _log_densities(
    model: Joint, parameters: Parameters, x: Float[Array, "point ..."], y: Shaped[Array, "point ..."]
) -> Float[Array, " point"]:
    outputs = model.network.apply(parameters.network, x)
    return model.likelihood.log_density(outputs, y, parameters.likelihood)


def _network_rows(draws: Draws, batch: Batch) -> tuple[Float[Array, "point ..."], Shaped[Array, "point ..."]]:
    """Inputs and targets as the network and the likelihood see them."""
    require_type(isinstance(batch, Batch), "`batch` must be a Batch", type(batch).__name__, "Pass `dataset.test`.")
    example = draws.example
    wanted = (shape_of(example.x)[1:], shape_of(example.y)[1:])
    came = (shape_of(batch.x)[1:], shape_of(batch.y)[1:])
    require(came == wanted, f"Rows of `batch` must have shapes {wanted}", came, "Pass points shaped as in training.")
    x, y = batch.x, batch.y.astype(batch.x.dtype) if draws.model.likelihood.task == "regression" else batch.y
    if draws.scaling is not None:
        x, y = draws.scaling.inputs(x), draws.scaling.targets(y)
    draws.model.likelihood.check_targets(y)
    return jnp.asarray(x), jnp.asarray(y)
