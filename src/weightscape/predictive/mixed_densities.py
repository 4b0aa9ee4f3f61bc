"""The densities of a mixture of predictives; see `mix`.

Over numbers all parts stand in one component, since their draws, outputs and noise have shapes of their own. Over
classes each part is a component, described by its averaged probabilities and its expected entropy.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Shaped

from weightscape.core.types import PRNGKey
from weightscape.data import Scaling
from weightscape.likelihoods import NO_OWN, ClassificationLikelihood, Own
from weightscape.predictive.components import Components
from weightscape.predictive.density import log_density
from weightscape.predictive.marginal import MarginalClassification, MarginalRegression, RegressionDensity
from weightscape.predictive.regression import Moments, moments


class Part(eqx.Module):
    """One predictive of the mixture.

    - `likelihood`, `own`, `weights`: as in its own mixture; the weights sum to one.
    - `share`: w_k.
    - `scaling`: from targets as the whole sees them to targets as this likelihood does.
    - `num_outputs`: outputs of each of its draws.
    """

    likelihood: RegressionDensity
    own: Own
    weights: Float[Array, " draw"]
    share: Float[Array, ""]
    scaling: Scaling
    num_outputs: int = eqx.field(static=True)

    @property
    def width(self) -> int:
        """How many numbers describe it at a point."""
        return len(self.weights) * self.num_outputs

    def components(self, rows: Float[Array, "point packed"]) -> Components:
        """Its own components."""
        outputs = jnp.moveaxis(rows.reshape(len(rows), len(self.weights), self.num_outputs), 1, 0)
        return Components(outputs, self.own, self.weights)

    def log_density(self, rows: Float[Array, "point packed"], y: Float[Array, "point ..."]) -> Float[Array, " point"]:
        """log w_k p_k(y), as a density over targets as the whole sees them."""
        each = log_density(self.likelihood, self.components(rows), self.scaling.targets(y))
        return each - self.scaling.log_target_scale() + jnp.log(self.share)

    def moments(self, rows: Float[Array, "point packed"]) -> Moments:
        """Its moments, in the units of the whole."""
        found = moments(self.likelihood, self.components(rows))
        square = lambda variance: self.scaling.unscale_std(jnp.sqrt(variance)) ** 2
        return Moments(self.scaling.unscale_mean(found.mean), *(square(variance) for variance in found[1:]))

    def cumulative(
        self, rows: Float[Array, "point packed"], y: Float[Array, "point target"]
    ) -> Float[Array, "point target"]:
        """F_k(y)."""
        return self.components(rows).cumulative(self.likelihood, self.scaling.targets(y))

    def sample(self, key: PRNGKey, rows: Float[Array, "point packed"]) -> Float[Array, "point target"]:
        """Targets of one of its draws."""
        key_draw, key_noise = jax.random.split(key)
        components = self.components(rows)
        i = jax.random.choice(key_draw, len(self.weights), p=self.weights)
        own = {name: values[i] for name, values in self.own.items()}
        return self.scaling.unscale_mean(self.likelihood.sample(key_noise, components.outputs[i], own))


class MixedNumbers(MarginalRegression):
    """Σ_k w_k p_k(y); its outputs at a point are those of all draws of all parts, one after another."""

    parts: tuple[Part, ...]

    def check_targets(self, y: Shaped[Array, "point ..."]) -> None:
        for part in self.parts:
            part.likelihood.check_targets(y)

    def log_density(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point ..."], own: Own = NO_OWN
    ) -> Float[Array, " point"]:
        return logsumexp(jnp.stack([part.log_density(rows, y) for part, rows in self._rows(outputs)]), axis=0)

    def sample(
        self, key: PRNGKey, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        key_part, *keys = jax.random.split(key, 1 + len(self.parts))
        each = [part.sample(one, rows) for one, (part, rows) in zip(keys, self._rows(outputs), strict=True)]
        return jnp.stack(each)[jax.random.choice(key_part, len(each), p=self._shares())]

    def mean(self, outputs: Float[Array, "point output"], own: Own = NO_OWN) -> Float[Array, "point target"]:
        return self._average(self._moments(outputs).mean)

    def aleatoric_variance(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        return self._average(self._moments(outputs).aleatoric_variance)

    def epistemic_variance(
        self, outputs: Float[Array, "point output"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        each = self._moments(outputs)
        return self._average(each.epistemic_variance + (each.mean - self._average(each.mean)[None]) ** 2)

    def cumulative(
        self, outputs: Float[Array, "point output"], y: Float[Array, "point target"], own: Own = NO_OWN
    ) -> Float[Array, "point target"]:
        return self._average(jnp.stack([part.cumulative(rows, y) for part, rows in self._rows(outputs)]))

    def _rows(self, outputs: Float[Array, "point output"]) -> list[tuple[Part, Float[Array, "point packed"]]]:
        ends = [sum(part.width for part in self.parts[: i + 1]) for i in range(len(self.parts))]
        return list(zip(self.parts, jnp.split(outputs, ends[:-1], axis=1), strict=True))

    def _moments(self, outputs: Float[Array, "point output"]) -> Moments:
        """Of all parts, on a leading axis."""
        each = [part.moments(rows) for part, rows in self._rows(outputs)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)

    def _average(self, values: Float[Array, "part *rest"]) -> Float[Array, "*rest"]:
        return jnp.tensordot(self._shares(), values, axes=1, precision="highest")

    def _shares(self) -> Float[Array, " part"]:
        return jnp.stack([part.share for part in self.parts])


class MixedClasses(MarginalClassification):
    """A part's averaged probabilities p; its outputs are log p + E[H], whose softmax is p.

    - `splits`: whether the expected entropy E[H] is known of all parts.
    """

    likelihood: ClassificationLikelihood
    splits: bool = eqx.field(static=True)

    @staticmethod
    def outputs_of(
        probabilities: Float[Array, "point class"], expected_entropy: Float[Array, " point"] | None
    ) -> Float[Array, "point class"]:
        """log p + E[H]: softmax does not see what is added to all, and log Σ exp gives it back."""
        logs = jnp.log(probabilities)
        return logs if expected_entropy is None else logs + expected_entropy[:, None]

    def expected_entropy(self, outputs: Float[Array, "point class"]) -> Float[Array, " point"] | None:
        return logsumexp(outputs, axis=1) if self.splits else None
