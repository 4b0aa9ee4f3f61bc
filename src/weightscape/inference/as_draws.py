"""Draws from whatever a method returned."""

from weightscape.core import PRNGKey
from weightscape.draws import Draws
from weightscape.inference.approximation import Approximation

NUM_DRAWS = 1000


def as_draws(key: PRNGKey, result: Draws | Approximation, num_draws: int = NUM_DRAWS) -> Draws:
    """The result itself where it is draws already, or `num_draws` from a density."""
    return result if isinstance(result, Draws) else result.sample(key, num_draws)
