"""A likelihood is the density of targets given a network's outputs.

    p(y | outputs, φ)

It reads the outputs' last axis, and may have parameters φ of its own (a noise scale) that are inferred beside the
weights. There are two kinds: over numbers (`RegressionLikelihood`) and over classes (`ClassificationLikelihood`).
"""

import abc
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from weightscape.core.checks import require, shape_of
from weightscape.core.types import PRNGKey
from weightscape.priors import Prior

Own = Mapping[str, Array]
"""The likelihood's own parameters φ by name; empty where it has none."""

NO_OWN: Own = {}


class Likelihood(eqx.Module):
    """p(y | outputs, φ) for each point."""

    @property
    @abc.abstractmethod
    def task(self) -> str:
        """Which of "regression" and "classification" this is for."""

    @abc.abstractmethod
    def num_outputs(self, y: Shaped[Array, "point ..."]) -> int:
        """How many outputs the network must have for these targets."""

    @abc.abstractmethod
    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        """Raise where the targets, as the likelihood sees them, cannot come from it."""

    @abc.abstractmethod
    def own_priors(self) -> dict[str, Prior]:
        """The priors of the own parameters φ."""

    @abc.abstractmethod
    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the own parameters φ, under the same names."""

    @abc.abstractmethod
    def log_density(
        self, outputs: Float[Array, "point output"], y: Shaped[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        """log p(y | outputs, φ) of each point, summed over the entries of a vector target."""

    @abc.abstractmethod
    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Shaped[Array, "point ..."]:
        """Targets y ~ p(y | outputs, φ)."""

    @abc.abstractmethod
    def information_root(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point coordinate factor"]:
        """F of each point, with F Fᵀ = E_y[s sᵀ]: the Fisher information of the outputs and of φ.

        s is the gradient of log p(y | outputs, φ), whose coordinates are the outputs, then φ name by name. The
        information is the likelihood's part of the generalised Gauss–Newton matrix, Jᵀ F Fᵀ J.
        """


class RegressionLikelihood(Likelihood):
    """A density over numbers; a target is a number or a vector of them."""

    @property
    def task(self) -> str:
        return "regression"

    @abc.abstractmethod
    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        """E[y | outputs, φ]."""

    @abc.abstractmethod
    def variance(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        """Var[y | outputs, φ]."""

    @abc.abstractmethod
    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point target"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        """P(Y ≤ y | outputs, φ), entry by entry."""


class ClassificationLikelihood(Likelihood):
    """A distribution over classes 0, …, C−1, with C = `num_classes`."""

    num_classes: eqx.AbstractVar[int]

    @property
    def task(self) -> str:
        return "classification"

    @abc.abstractmethod
    def log_probabilities(self, outputs: Float[Array, "point output"]) -> Float[Array, "point class"]:
        """log p(y = c | outputs) for each class c."""

    def probabilities(self, outputs: Float[Array, "point output"]) -> Float[Array, "point class"]:
        """p(y = c | outputs) for each class c."""
        return jnp.exp(self.log_probabilities(outputs))

    def own_priors(self) -> dict[str, Prior]:
        return {}

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        return {}

    def log_density(
        self, outputs: Float[Array, "point output"], y: Int[Array, " point"], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        return jnp.take_along_axis(self.log_probabilities(outputs), y[:, None], axis=1)[:, 0]

    def sample(self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Int[Array, " point"]:
        return jax.random.categorical(key, self.log_probabilities(outputs))

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        whole = jnp.issubdtype(y.dtype, jnp.integer) and y.ndim == 1
        came = f"{y.dtype} of shape {shape_of(y)}"
        remedy = "Encode the classes as integers of shape (point,)."
        require(whole, "Targets of a classification must be one integer for each point", came, remedy)
        labels = np.unique(np.asarray(y)).tolist()
        inside = labels[0] >= 0 and labels[-1] < self.num_classes
        asked = f"Classes must lie in 0..{self.num_classes - 1}"
        require(inside, asked, f"{labels[0]}..{labels[-1]}", "Recode the targets or change `num_classes`.")


def diagonal_root(*parts: Float[Array, "point _"]) -> Float[Array, "point coordinate coordinate"]:
    """F of coordinates that are independent: a diagonal with the given entries, in this order."""
    entries = jnp.concatenate(parts, axis=1)
    return entries[:, :, None] * jnp.eye(entries.shape[1], dtype=entries.dtype)[None]


def require_target_shape(y: Shaped[Array, "point ..."]) -> None:
    """Raise unless targets are a number or a vector for each point."""
    asked = "Targets of a regression must have shape (point,) or (point, target)"
    require(y.ndim in (1, 2), asked, shape_of(y), "Reshape them.")


def as_columns(y: Float[Array, "point ..."]) -> Float[Array, "point target"]:
    """Targets with a target axis: (point,) becomes (point, 1)."""
    return y[:, None] if y.ndim == 1 else y


def num_columns(y: Shaped[Array, "point ..."]) -> int:
    """How many numbers a target holds."""
    return 1 if y.ndim == 1 else int(y.shape[1])
