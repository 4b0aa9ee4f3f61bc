"""How good an average of networks is, against how many there are: probabilities are averaged, never logits.

p_k(c | x) = (1/k) Σ_{i ≤ k} p(c | x, θ_i)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from weightscape.core.checks import require, require_count


class AveragingRow(NamedTuple):
    """Scores of k networks together: accuracy, larger is better, and negative log likelihood, smaller is better."""

    num_networks: int
    accuracy: float
    nll: float


def averaging_curve(
    probabilities: Float[np.ndarray, "network point class"], y: Int[np.ndarray, " point"], counts: Sequence[int]
) -> tuple[AveragingRow, ...]:
    """The scores of the first k networks together, for each k of `counts`."""
    for count in counts:
        require_count("A number of networks that are averaged", count)
    asked, came = f"At most {len(probabilities)} networks can be averaged", max(counts, default=0)
    require(came <= len(probabilities), asked, came, "Draw more networks, or ask for fewer.")
    return tuple(_row(np.asarray(np.mean(probabilities[:count], axis=0, dtype=np.float64)), np.asarray(y), count)
                 for count in counts)  # fmt: skip


def _row(p: Float[np.ndarray, "point class"], y: Int[np.ndarray, " point"], count: int) -> AveragingRow:
    chosen = p[np.arange(len(y)), y]
    least = np.finfo(np.float32).tiny  # a probability of single precision that has vanished
    return AveragingRow(count, float(np.mean(np.argmax(p, axis=1) == y)), float(-np.mean(np.log(chosen + least))))
