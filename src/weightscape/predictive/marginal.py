"""Densities of targets in which the function is integrated out, exactly or nearly.

    p(y | x) = ∫ p(y | f) N(f; m, S) df

A mixture of draws finds doubt about the function in the spread of its components. Such a density holds that doubt
within a single component, and so must say itself how large it is. It stands where a likelihood stands in a mixture;
its `outputs` are whatever describes it at a point.
"""

import abc
from typing import TypeAlias

import equinox as eqx
from jaxtyping import Array, Float, Int, Shaped

from weightscape.core.types import PRNGKey
from weightscape.likelihoods import NO_OWN, ClassificationLikelihood, Likelihood, Own, RegressionLikelihood


class MarginalRegression(eqx.Module):
    """A density over numbers that knows the two parts of its variance."""

    @property
    def task(self) -> str:
        """What this is for."""
        return "regression"

    @abc.abstractmethod
    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        """Raise where targets cannot come from it."""

    @abc.abstractmethod
    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        """log p(y | x) of each point; a vector target is one event."""

    @abc.abstractmethod
    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        """Targets y ~ p(y | x), independent between points."""

    @abc.abstractmethod
    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        """E[y]."""

    @abc.abstractmethod
    def aleatoric_variance(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        """E[Var(y | f)]: the noise."""

    @abc.abstractmethod
    def epistemic_variance(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        """Var(E[y | f]): the doubt about the mean."""

    def variance(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        """Var[y], their sum."""
        return self.aleatoric_variance(outputs, own) + self.epistemic_variance(outputs, own)

    @abc.abstractmethod
    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point target"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        """P(Y ≤ y), entry by entry."""


class MarginalClassification(eqx.Module):
    """A distribution over classes that knows the aleatoric part of its entropy, or that it has none.

    - `likelihood`: gives the averaged probabilities where it gets `outputs`.
    """

    likelihood: eqx.AbstractVar[ClassificationLikelihood]

    @property
    def task(self) -> str:
        """What this is for."""
        return "classification"

    @abc.abstractmethod
    def expected_entropy(self, outputs: Float[Array, "point output"]) -> Float[Array, " point"] | None:
        """E[H(y | f)] in nats, or None where only the probabilities are known."""

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        """Raise where targets are no labels of these classes."""
        self.likelihood.check_targets(y)

    def probabilities(self, outputs: Float[Array, "point output"]) -> Float[Array, "point class"]:
        """P(y = c | x)."""
        return self.likelihood.probabilities(outputs)

    def log_density(
        self, outputs: Float[Array, "point output"], y: Int[Array, " point"], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        """log P(y | x) of each label."""
        return self.likelihood.log_density(outputs, y, own)

    def sample(self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Int[Array, " point"]:
        """Labels y ~ P(y | x), independent between points."""
        return self.likelihood.sample(key, outputs, own)


RegressionDensity: TypeAlias = RegressionLikelihood | MarginalRegression
"""The density of a component over numbers."""

ClassDensity: TypeAlias = ClassificationLikelihood | MarginalClassification
"""The distribution of a component over classes."""

Density: TypeAlias = Likelihood | MarginalRegression | MarginalClassification
"""The density of a component."""
