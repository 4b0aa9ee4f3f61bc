"""Shares: numbers that say how much of a whole each part is."""

import numpy as np
from jaxtyping import ArrayLike, Float

from weightscape.core.checks import require, shape_of


def normalised_shares(name: str, shares: ArrayLike | list, num_parts: int) -> Float[np.ndarray, " part"]:
    """`shares` divided by their sum, in double precision; raises unless there is one for each part, none negative."""
    parts = np.asarray(shares, np.float64)
    asked, came = f"{name} must be {num_parts} numbers", f"shape {shape_of(parts)}"
    require(parts.shape == (num_parts,), asked, came, "Pass one for each part.")
    good = bool(np.all(np.isfinite(parts)) and np.all(parts >= 0) and parts.sum() > 0)
    asked, remedy = f"{name} must be finite, not negative and not all zero", "Pass shares such as [0.7, 0.3]."
    require(good, asked, parts.tolist(), remedy)
    return parts / parts.sum()
