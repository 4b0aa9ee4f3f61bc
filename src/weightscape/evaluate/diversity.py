"""How much networks differ in what they say.

    JS(p, q) = H[(p + q)/2] − (H[p] + H[q])/2                  between 0 and log 2 nats, larger is more diverse
    overlap(A, B) = |A ∩ B| / |A ∪ B|                          of the points A and B that two networks get wrong

Both are averaged over all pairs of networks, JS over points as well. An ensemble gains from networks that err at
different points: low overlap. Networks that get nothing wrong agree, overlap 1.
"""

import numpy as np
from jaxtyping import Float, Int

from weightscape.core.checks import require

Networks = Float[np.ndarray, "network point class"]


def jensen_shannon(probabilities: Networks) -> float:
    """The mean over pairs of networks and over points of JS, in nats."""
    _require_pairs(len(probabilities))
    p = np.asarray(probabilities, np.float64)
    own = _entropy(p)
    total = 0.0
    for i in range(1, len(p)):
        total += float(np.sum(np.mean(_entropy((p[:i] + p[i]) / 2) - (own[:i] + own[i]) / 2, axis=1)))
    return total / (len(p) * (len(p) - 1) / 2)


def error_overlap(probabilities: Networks, y: Int[np.ndarray, " point"]) -> float:
    """The mean over pairs of networks of the overlap of their errors."""
    _require_pairs(len(probabilities))
    wrong = (np.argmax(probabilities, axis=2) != np.asarray(y)[None]).astype(np.float64)
    both, each = wrong @ wrong.T, np.sum(wrong, axis=1)
    either = each[:, None] + each[None, :] - both
    overlaps = np.where(either > 0, both / np.where(either > 0, either, 1.0), 1.0)
    return float(np.mean(overlaps[np.triu_indices(len(wrong), 1)]))


def _entropy(p: Float[np.ndarray, "*any point class"]) -> Float[np.ndarray, "*any point"]:
    return -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=-1)


def _require_pairs(count: int) -> None:
    require(count > 1, "Networks whose diversity is asked for must be at least 2", count, "Draw more of them.")
