"""Independent blocks of weights, such as layers, each with a covariance of its own.

    Σ_{I_b I_b} = Σ_b,        Σ_{I_b I_c} = 0 for b ≠ c

Weights in no block are fixed: they have no variance, and densities are over the others.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from weightscape.core import Scalar, registered
from weightscape.core.checks import require
from weightscape.inference.gaussian.covariance import Covariance

Vector = Float[Array, " weight"]


def _index_arrays(places: tuple) -> tuple:
    return tuple(jnp.asarray(where) for where in places)


@registered("inference.Blocks")
class Blocks(Covariance):
    """Covariances of disjoint sets of weights.

    - `parts`: Σ_b.  `places`: I_b, where its weights lie in the flat vector.  `num_weights`: d.
    """

    parts: tuple[Covariance, ...]
    places: tuple[Int[Array, " _"], ...] = eqx.field(converter=_index_arrays)
    num_weights: int = eqx.field(static=True)

    def __check_init__(self):
        if any(isinstance(where, Tracer) for where in self.places):
            return
        sizes = [part.size for part in self.parts]
        came = [len(where) for where in self.places]
        require(sizes == came, f"`places` of Blocks must have lengths {sizes}", came, "Give each part its own places.")
        taken = np.concatenate([np.asarray(where) for where in self.places]) if self.places else np.zeros(0, int)
        inside = len(np.unique(taken)) == len(taken) and bool(np.all((taken >= 0) & (taken < self.num_weights)))
        remedy = "Use each index from 0 to d - 1 at most once."
        require(inside, f"`places` of Blocks must be distinct and below {self.num_weights}", "others", remedy)

    @property
    def size(self) -> int:
        return self.num_weights

    @property
    def num_free(self) -> int:
        return sum(part.num_free for part in self.parts)

    def root(self, white: Vector) -> Vector:
        return self._each(lambda part, vector: part.root(vector), white)

    def root_transpose(self, vector: Vector) -> Vector:
        return self._each(lambda part, vector: part.root_transpose(vector), vector)

    def whiten(self, vector: Vector) -> Vector:
        return self._each(lambda part, vector: part.whiten(vector), vector)

    def diagonal(self) -> Vector:
        return self._each(lambda part, vector: part.diagonal(), self._zeros())

    def precision_diagonal(self) -> Vector:
        return self._each(lambda part, vector: part.precision_diagonal(), self._zeros())

    def log_determinant(self) -> Scalar:
        return sum((part.log_determinant() for part in self.parts), start=jnp.zeros(()))

    def _each(self, function: Callable[[Covariance, Array], Array], vector: Vector) -> Vector:
        made = jnp.zeros_like(vector)
        for part, where in zip(self.parts, self.places, strict=True):
            made = made.at[where].set(function(part, vector[where]))
        return made

    def _zeros(self) -> Vector:
        dtypes = [part.diagonal().dtype for part in self.parts]
        return jnp.zeros((self.num_weights,), jnp.result_type(*dtypes) if dtypes else float)
