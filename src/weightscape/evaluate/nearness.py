"""How near predictions are to those of a reference, by what suits the task.

    classes: agreement and total variation              numbers: the Wasserstein distances W1 and W2, in units of y

A reference made of draws is itself known only so well: what two halves of it are apart, `halves_nearness`, is what a
second reference would be away from the first, and more, since halves are noisier. Smaller differences mean nothing.
"""

from jaxtyping import ArrayLike

from weightscape.draws import Draws
from weightscape.evaluate.agreement import agreement, total_variation
from weightscape.evaluate.wasserstein import wasserstein
from weightscape.predictive import Predictive, predict

CLASS_NEARNESS = ("agreement", "total variation")
NUMBER_NEARNESS = ("W1", "W2")


def nearness(predictive: Predictive, reference: Predictive) -> dict[str, float]:
    """The measures of this task by name; both predictions must be of the same points.

    Example:
    >>> print(nearness(predict(quick, x), predict(draws, x)))            # doctest: +SKIP
    {'agreement': 0.967, 'total variation': 0.025}
    """
    if reference.task == "classification":
        return dict(
            zip(CLASS_NEARNESS, (agreement(predictive, reference), total_variation(predictive, reference)), strict=True)
        )
    return dict(zip(NUMBER_NEARNESS, (float(one) for one in wasserstein(predictive, reference)), strict=True))


def halves_nearness(draws: Draws, x: ArrayLike) -> dict[str, float] | None:
    """How near every other chain is to the rest, or every other draw of a single one; None for a single draw."""
    if len(draws) < 2:
        return None
    cuts = (slice(None, None, 2), slice(1, None, 2))
    parts = [draws[cut] if draws.num_chains > 1 else draws[:, cut] for cut in cuts]
    return nearness(*(predict(part, x) for part in parts))
