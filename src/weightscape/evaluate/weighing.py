"""Several predictives on the same new points: how good each is, and how much of a mixture it deserves.

    log density = Σ_i l_i,        its standard error = √(n Var_i l_i),        l_i = log p(y_i | x_i, D)

Differences are taken point by point, to the best. Weights are those of stacking, which makes the best mixture, and of
pseudo-BMA+, which says how sure the points are of the best single one. Mix with `predictive.mix`, or `draws.combine`
where all are draws of one model.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core import PRNGKey
from weightscape.core.checks import require, shape_of
from weightscape.evaluate.comparison import comparison_table
from weightscape.evaluate.pseudo_bma import pseudo_bma_plus_weights
from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.stacking import stacking_weights
from weightscape.predictive import Predictive


class WeighedPredictive(NamedTuple):
    """A predictive among others.

    - `log_density`: of all points together, in nats; larger is better.
    - `behind`: how far it is behind the best, and the standard error of that.
    - `stacking`, `pseudo_bma_plus`: its weights.
    """

    name: str
    log_density: Measured
    behind: Measured
    stacking: float
    pseudo_bma_plus: float


def weigh(key: PRNGKey, predictives: Mapping[str, Predictive], y: ArrayLike | list) -> tuple[WeighedPredictive, ...]:
    """All predictives by their log density of targets that none was fitted to, the best first.

    - `predictives`: at the same inputs, by name.
    - `y`: targets of held-out points, in original units; better not those that the mixture is scored on afterwards.

    Example:
    >>> rows = weigh(key, {"HMC": predict(hmc, x), "ensemble": predict(ensemble, x)}, y)          # doctest: +SKIP
    >>> mixture = mix([...], [row.stacking for row in rows])                                      # doctest: +SKIP

    """
    require(len(predictives) > 0, "`predictives` of weigh must hold at least one", 0, "Pass {name: predictive}.")
    rows = {name: np.asarray(each.log_density(y), np.float64) for name, each in predictives.items()}
    return weigh_log_densities(key, rows)


def weigh_log_densities(
    key: PRNGKey, log_densities: Mapping[str, Float[np.ndarray, " point"]]
) -> tuple[WeighedPredictive, ...]:
    """The same from log densities of each point by name, such as those of `leave_one_out`."""
    shapes = {shape_of(row) for row in log_densities.values()}
    remedy = "Pass one number for each point, the same points for all."
    require(len(shapes) == 1, "Log densities of weigh must be of the same points", shapes, remedy)
    order = sorted(log_densities, key=lambda name: -float(np.sum(log_densities[name])))
    table = np.stack([log_densities[name] for name in order])
    stacked, averaged = stacking_weights(table), pseudo_bma_plus_weights(key, table)
    return tuple(
        WeighedPredictive(name, _total(table[i]), _total(table[0] - table[i]), float(stacked[i]), float(averaged[i]))
        for i, name in enumerate(order)
    )


def weighing_text(rows: Sequence[WeighedPredictive]) -> str:
    """The rows as a Markdown table."""
    return comparison_table(
        {
            row.name: {
                "log density": row.log_density.value,
                "± error": row.log_density.standard_error,
                "behind": row.behind.value,
                "± its error": row.behind.standard_error,
                "stacking": round(row.stacking, 4),
                "pseudo-BMA+": round(row.pseudo_bma_plus, 4),
            }
            for row in rows
        }
    )


def _total(values: Float[np.ndarray, " point"]) -> Measured:
    """The sum over points and its standard error, which a single point does not have (NaN)."""
    count = len(values)
    error = math.sqrt(count) * float(values.std(ddof=1)) if count > 1 else math.nan
    return Measured(float(values.sum()), error)
