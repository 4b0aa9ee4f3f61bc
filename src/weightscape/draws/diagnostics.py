"""Have the chains settled? R̂ and effective sample sizes, in function space and of the log density.

    R̂ = √(((n − 1)/n W + B/n) / W)

W is the variance within chains and B/n that of their means, after every chain is cut in two and values are replaced by
normal scores of their ranks; the same is done with distances from the median, and the larger R̂ counts. It tends to 1
as chains agree: below 1.01 they do, above 1.05 they do not. The bulk effective sample size says how many independent
draws the centre is known as well as by, the tail one the same of the outer quantiles. The numbers are ArviZ's.

Weight-space R̂ is not offered: equal functions have many weights (see `function_space`).

Reference: Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and localization,
equations 1 to 4 and section 4.
"""

from typing import NamedTuple

import arviz_base
import arviz_stats
import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, require_count, require_finite, require_type
from weightscape.draws.draws import Draws
from weightscape.draws.function_space import check_probes, evaluate_functions
from weightscape.draws.header import Header

_LEAST_DRAWS = 4


class Convergence(NamedTuple):
    """R̂ and effective sample sizes of some quantities.

    A quantity that never changes in any chain has no R̂: it is NaN, as is every R̂ of a single chain.
    """

    rhat: Float[np.ndarray, "*quantity"]
    bulk_ess: Float[np.ndarray, "*quantity"]
    tail_ess: Float[np.ndarray, "*quantity"]


class Diagnostics(NamedTuple):
    """How well the chains agree, and how many independent draws they are worth.

    - `functions`: of the function at each probe and output, of shape (point, output).
    - `log_density`: of log p(D, θ), of shape ().
    - `seconds`: the time of the whole run, warm-up included, where it is known.
    """

    functions: Convergence
    log_density: Convergence
    num_chains: int
    num_draws: int
    seconds: float | None = None

    @property
    def worst_rhat(self) -> float:
        """The largest R̂ over probes and outputs, those that never change left aside; NaN for a single chain."""
        rhat = self.functions.rhat[~np.isnan(self.functions.rhat)]
        return float(rhat.max()) if rhat.size else float("nan")

    @property
    def least_bulk_ess(self) -> float:
        """The smallest bulk effective sample size over probes and outputs."""
        return float(self.functions.bulk_ess.min())

    @property
    def least_tail_ess(self) -> float:
        """The smallest tail effective sample size over probes and outputs."""
        return float(self.functions.tail_ess.min())

    @property
    def ess_per_second(self) -> float | None:
        """The smallest bulk effective sample size for each second of the run, where its time is known."""
        return self.least_bulk_ess / self.seconds if self.seconds else None

    def __str__(self) -> str:
        rate = "" if self.ess_per_second is None else f", {self.ess_per_second:.3g} a second"
        return (
            f"function space at {self.functions.rhat.shape[0]} probes: worst R̂ {self.worst_rhat:.3f}, effective sample "
            f"size at least {self.least_bulk_ess:.0f} (tail {self.least_tail_ess:.0f}) of "
            f"{self.num_chains * self.num_draws} draws{rate}; log density: R̂ {float(self.log_density.rhat):.3f}"
        )


def diagnose(draws: Draws, x: ArrayLike | list | None = None) -> Diagnostics:
    """R̂ and effective sample sizes of the functions at the probes `x`, and of the log density.

    - `draws`: chains in time, at least four draws of each and all weighing the same.
    - `x`: inputs in original units; the example that draws carry where None.

    Example:
    >>> print(diagnose(draws, data.test.x[:16]))                # doctest: +SKIP

    """
    _require_chains(draws)
    return Diagnostics(
        measure_convergence(function_outputs(draws, x)),
        measure_convergence(np.asarray(draws.log_density)),
        draws.num_chains,
        draws.num_draws,
        draws.facts.get("seconds"),
    )


def function_outputs(
    draws: Draws, x: ArrayLike | list | None = None, *, max_draws: int | None = None
) -> Float[np.ndarray, "chain draw point output"]:
    """The function of every draw at the probes: means in original units, or probabilities of classes.

    - `x`: inputs in original units; the example that draws carry where None.
    - `max_draws`: take at most so many draws of each chain, evenly spaced.
    """
    remedy = "Pass what `method.run` returns."
    require_type(isinstance(draws, Draws), "`draws` must be Draws", type(draws).__name__, remedy)
    if max_draws is not None:
        require_count("`max_draws` of function_outputs", max_draws)
        draws = draws.thin(-(-draws.num_draws // max_draws))
    header = Header(draws.model, draws.scaling, draws.example)
    values = evaluate_functions(header, draws.params, check_probes(x, header))
    require_finite("Functions of the draws at the probes", values)
    return values


def measure_convergence(values: Float[np.ndarray, "chain draw *quantity"]) -> Convergence:
    """R̂ and effective sample sizes along the first two axes, as ArviZ computes them."""
    outer = arviz_base.rcParams["stats.ci_prob"]  # where ArviZ's own summary looks for the tails
    with np.errstate(divide="ignore", invalid="ignore"):  # quantities that never change
        found = (
            arviz_stats.rhat(values),
            arviz_stats.ess(values, method="bulk"),
            arviz_stats.ess(values, method="tail", prob=outer),
        )
    return Convergence(*(np.asarray(numbers) for numbers in found))


def _require_chains(draws: Draws) -> None:
    remedy = "Pass what `run` of a sampler returns."
    require_type(isinstance(draws, Draws), "`draws` of diagnose must be Draws", type(draws).__name__, remedy)
    remedy = "R̂ does not apply to weighted draws; look at the effective sample size of their weights."
    require(draws.log_weights is None, "`draws` of diagnose must weigh the same", "draws with `log_weights`", remedy)
    remedy = "Points and ensembles of them are not chains in time; pass the draws of a sampler."
    asked = f"`draws` of diagnose must have at least {_LEAST_DRAWS} draws of each chain"
    require(draws.num_draws >= _LEAST_DRAWS, asked, draws.num_draws, remedy)
