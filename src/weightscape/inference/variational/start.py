"""Where a guide starts: around one position."""

import jax

from weightscape.core import PRNGKey, Progress
from weightscape.core.layout import Layout
from weightscape.inference.gaussian import Gaussian
from weightscape.inference.method import Init, Method
from weightscape.inference.start import start_positions
from weightscape.inference.variational.guide import Vector
from weightscape.inference.variational.mean_field import MeanField
from weightscape.posterior import Posterior


def start_vector(key: PRNGKey, posterior: Posterior, layout: Layout, init: Init, progress: Progress) -> Vector:
    """The mean of an approximation; else where one chain would start."""
    key_method, key_position = jax.random.split(key)
    start = init.run(key_method, posterior, progress=progress) if isinstance(init, Method) else init
    if isinstance(start, (Gaussian, MeanField)):
        return start.location
    positions = start_positions(key_position, posterior, 1, start, progress)
    return layout.flatten(jax.tree.map(lambda leaf: leaf[0], positions))
