"""Predictive: what all draws together say about y at some inputs.

    p(y | x, D) ≈ Σ_i w_i p(y | f(x; θ_i), φ_i)

There are two spreads, and they answer different questions. `epistemic_std` is the spread of the *mean function* over
draws: doubt that more data would remove. `std` is the spread of a *new observation y*: it adds the noise,
`aleatoric_std`. Everything is in the targets' original units.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Shaped

from weightscape.core.checks import InputError, require_count, require_fraction
from weightscape.core.keys import require_key
from weightscape.core.types import PRNGKey
from weightscape.predictive.classification import Classes, classes
from weightscape.predictive.density import log_density
from weightscape.predictive.mixture import Mixture
from weightscape.predictive.quantile import Quantiles, cumulative
from weightscape.predictive.regression import Moments, moments
from weightscape.predictive.sampling import Sampling
from weightscape.predictive.units import Units


class Predictive(eqx.Module):
    """p(y | x, D) at each point; made by `predict(draws, x)` or `predict_linearised(approximation, x)`.

    Results have shape (point,) where targets are numbers or labels and (point, target) where they are vectors;
    quantiles, intervals and `cumulative` of a vector target are those of each entry alone.

    - `mixture`: one component for each draw, in the units the network sees; a single one where the function is
      integrated out.
    - `units`: the way back to original units.
    """

    mixture: Mixture
    units: Units

    @property
    def task(self) -> str:
        """What kind of y this is about: "regression" or "classification"."""
        return self.mixture.likelihood.task

    @property
    def num_points(self) -> int:
        """How many inputs the predictions are for."""
        return self.mixture.num_points

    @property
    def mean(self) -> Float[Array, "point ..."]:
        """E[y | x, D], the mean of y averaged over draws."""
        self.require_task("regression", "mean", "Use `probabilities`.")
        return self.units.values(self._moments.mean)

    @property
    def std(self) -> Float[Array, "point ..."]:
        """The spread of a new observation y: its noise and the doubt about its mean together.

        std² = aleatoric_std² + epistemic_std². For error bars on the mean function use `epistemic_std`.
        """
        self.require_task("regression", "std", "Use `entropy`.")
        total = self._moments.aleatoric_variance + self._moments.epistemic_variance
        return self.units.spreads(jnp.sqrt(total))

    @property
    def variance(self) -> Float[Array, "point ..."]:
        """Var[y | x, D], the variance of a new observation y: `std` squared."""
        self.require_task("regression", "variance", "Use `entropy`.")
        return self.std**2

    @property
    def epistemic_std(self) -> Float[Array, "point ..."]:
        """The spread of the mean E[y | x, θ] over draws θ: doubt that more data would remove.

        It holds no noise: bars of this size are about the mean function, not about new observations. For
        those use `std`.
        """
        self.require_task("regression", "epistemic_std", "Use `mutual_information`.")
        return self.units.spreads(jnp.sqrt(self._moments.epistemic_variance))

    @property
    def aleatoric_std(self) -> Float[Array, "point ..."]:
        """The noise of y around its mean, √E[Var(y | x, θ)]: it stays however much data there is."""
        self.require_task("regression", "aleatoric_std", "Use `expected_entropy`.")
        return self.units.spreads(jnp.sqrt(self._moments.aleatoric_variance))

    def quantile(self, q: float) -> Float[Array, "point ..."]:
        """The value that a new observation y stays below with probability `q`."""
        self.require_task("regression", "quantile", "Use `probabilities`.")
        require_fraction("`q` of quantile", q)
        return self.units.values(self.mixture.summarise(Quantiles(jnp.asarray([q])))[:, 0])

    def interval(self, level: float = 0.9) -> tuple[Float[Array, "point ..."], Float[Array, "point ..."]]:
        """Ends (lower, upper) that hold a new observation y with probability `level`, the rest split evenly."""
        self.require_task("regression", "interval", "Use `probabilities`.")
        require_fraction("`level` of interval", level)
        ends = self.mixture.summarise(Quantiles(jnp.asarray([(1 - level) / 2, (1 + level) / 2])))
        return self.units.values(ends[:, 0]), self.units.values(ends[:, 1])

    def cumulative(self, y: ArrayLike | list) -> Float[Array, "point ..."]:
        """P(Y ≤ y | x, D), entry by entry; uniform on (0, 1) over points where predictions are calibrated."""
        self.require_task("regression", "cumulative", "Use `probabilities`.")
        columns = self.units.to_network_columns(self.check_targets(y))
        return self.units.without_columns(self.mixture.summarise(cumulative, columns))

    @property
    def probabilities(self) -> Float[Array, "point class"]:
        """P(y = c | x, D): probabilities averaged over draws, never logits."""
        self.require_task("classification", "probabilities", "Use `mean` or `interval`.")
        return self._classes.probabilities

    @property
    def entropy(self) -> Float[Array, " point"]:
        """H[y | x, D] in nats: all uncertainty about the class of a new observation."""
        self.require_task("classification", "entropy", "Use `std`.")
        return self._classes.entropy

    @property
    def expected_entropy(self) -> Float[Array, " point"]:
        """The entropy of single draws, averaged: the aleatoric part, which more data would not remove."""
        self.require_task("classification", "expected_entropy", "Use `aleatoric_std`.")
        return self._known_expected_entropy("expected_entropy")

    @property
    def mutual_information(self) -> Float[Array, " point"]:
        """entropy − expected_entropy, the epistemic part: how much the draws disagree. Rounding stops at zero."""
        self.require_task("classification", "mutual_information", "Use `epistemic_std`.")
        return jnp.maximum(self.entropy - self._known_expected_entropy("mutual_information"), 0)

    def log_density(self, y: ArrayLike | list) -> Float[Array, " point"]:
        """log p(y | x, D) of targets in original units; of a label, its log probability."""
        targets = self.units.to_network(self.check_targets(y))
        return self.units.log_densities(self.mixture.summarise(log_density, targets))

    def sample(self, key: PRNGKey, num_samples: int) -> Shaped[Array, "sample point ..."]:
        """New observations y; within a sample one draw of the weights serves all points.

        Where the function is integrated out there are no draws, and the points are independent.
        """
        require_key(key, "sample")
        require_count("`num_samples` of sample", num_samples)
        key_draws, key_noise = jax.random.split(key)
        weights = self.mixture.weights[: self.mixture.num_draws]
        chosen = jax.random.choice(key_draws, self.mixture.num_draws, (num_samples,), p=weights)
        sampling = Sampling(jax.random.split(key_noise, num_samples), chosen)
        samples = jnp.swapaxes(self.mixture.summarise(sampling, np.arange(self.num_points)), 0, 1)
        return samples if self.task == "classification" else self.units.values(samples)

    def check_targets(self, y: ArrayLike | list) -> Shaped[Array, "point ..."]:
        """Targets in original units as an array, checked against these predictions."""
        return self.units.check(y, self.mixture.likelihood, self.num_points)

    def require_task(self, task: str, quantity: str, remedy: str) -> None:
        """Raise unless these are predictions of that task."""
        if self.task != task:
            raise InputError(f"`{quantity}` must be asked of a {task}, got a {self.task}. {remedy}")

    def _known_expected_entropy(self, quantity: str) -> Float[Array, " point"]:
        if self._classes.expected_entropy is None:
            raise InputError(
                f"`{quantity}` must be asked of draws or of a link that splits the entropy, got Probit. "
                "Use `LaplaceBridge()` or `FunctionSamples(key)`."
            )
        return self._classes.expected_entropy

    @functools.cached_property
    def _moments(self) -> Moments:
        return self.mixture.summarise(moments)

    @functools.cached_property
    def _classes(self) -> Classes:
        return self.mixture.summarise(classes)
