"""Conditions: what is known about each network of a population, so that a flow learns p(θ | c) and draws for any c.

    loss = E_{t, x₀, (x₁, c)} ‖ v(t, x_t | k e(c)) − u_t ‖² / d,      k = 0 for a share `dropped` of examples, else 1

Its minimum is v(t, x | e(c)) = E[u_t | x_t = x, c], the velocity of the flow from the source to p(θ | c); what is
learned from k = 0 is v(t, x | ∅), the flow to the whole population. e is an encoding (`encodings`).

Sources must not depend on c. A coupling that reorders the targets of a batch would give each c those sources that lie
near its own networks, and the flow of a c starts from all of them; pairs are therefore `Independent` or `Aligned`.

References: Peebles et al. (2022), Learning to learn with generative models of neural network checkpoints, for losses as
conditions; Ho & Salimans (2022), Classifier-free diffusion guidance, for k.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from weightscape.core import registered
from weightscape.core.batches import in_batches
from weightscape.core.checks import require, require_count, require_known
from weightscape.core.numbers import number
from weightscape.core.types import Scalar
from weightscape.draws import Draws
from weightscape.flow.encodings import Encoding, OneHot, Standardised, Values, require_labels
from weightscape.posterior import Parameters, Posterior

_NUM_AT_ONCE = 32


class Conditions(eqx.Module):
    """What a flow is told about the networks that it learns from, and asked for afterwards.

    - `dropped`: the share of examples that are shown without, from 0 to below 1. Without any there is no flow to the
      whole population, `given(None)`, and none to go beyond, `strength`.
    """

    dropped: eqx.AbstractVar[Scalar]

    @property
    @abc.abstractmethod
    def noted(self) -> str | None:
        """Where in `info` of draws values stand; None where they follow from the networks."""

    @abc.abstractmethod
    def values(self, posterior: Posterior, draws: Draws) -> Shaped[np.ndarray, "chain draw"]:
        """What is known of each network."""

    @abc.abstractmethod
    def encoding(self, values: Values) -> Encoding:
        """How values are shown, from those of the training networks."""

    @abc.abstractmethod
    def blank(self) -> Encoding:
        """An encoding of the same structure, whose numbers are not known yet."""


@registered("flow.ByLabel")
class ByLabel(Conditions):
    """A whole number in `draws.info[name]`, from 0 to `num_labels` − 1: a task, a data set, an optimiser.

    Every label must have networks. `draws.with_info(digit=3)` gives a population one; `merge` puts several together.
    """

    name: str = eqx.field(static=True)
    num_labels: int = eqx.field(static=True)
    dropped: Scalar = eqx.field(converter=number, default=0.1)

    def __check_init__(self):
        require_count("`num_labels` of ByLabel", self.num_labels, least=2)
        _require_share("ByLabel", self.dropped)

    @property
    def noted(self) -> str | None:
        return self.name

    def values(self, posterior: Posterior, draws: Draws) -> Shaped[np.ndarray, "chain draw"]:
        labels = _noted(draws, self.name)
        require_labels(f"`info[{self.name!r}]` of draws", labels, self.num_labels)
        return labels

    def encoding(self, values: Values) -> Encoding:
        missing = sorted(set(range(self.num_labels)) - set(np.unique(values).tolist()))
        asked, remedy = "Each label of ByLabel must have training networks", "Pass some, or a smaller `num_labels`."
        require(not missing, asked, f"none of {missing}", remedy)
        return OneHot(self.num_labels)

    def blank(self) -> Encoding:
        return OneHot(self.num_labels)


@registered("flow.ByProperty")
class ByProperty(Conditions):
    """A real number in `draws.info[name]`: an accuracy, a sharpness, a share of zeros. Shown standardised."""

    name: str = eqx.field(static=True)
    dropped: Scalar = eqx.field(converter=number, default=0.1)

    def __check_init__(self):
        _require_share("ByProperty", self.dropped)

    @property
    def noted(self) -> str | None:
        return self.name

    def values(self, posterior: Posterior, draws: Draws) -> Shaped[np.ndarray, "chain draw"]:
        return _noted(draws, self.name)

    def encoding(self, values: Values) -> Encoding:
        return Standardised.of(f"`info[{self.name!r}]` of draws", values)

    def blank(self) -> Encoding:
        return _blank()


@registered("flow.ByLoss")
class ByLoss(Conditions):
    """The mean negative log likelihood of each network on the posterior's data, in nats a point. Shown standardised.

    No logarithm is taken, since losses of densities may be negative. Where they are spread over orders of magnitude,
    note one: `draws.with_info(log_loss=np.log(mean_losses(posterior, draws)))` and `ByProperty("log_loss")`.
    """

    dropped: Scalar = eqx.field(converter=number, default=0.1)

    def __check_init__(self):
        _require_share("ByLoss", self.dropped)

    @property
    def noted(self) -> str | None:
        return None

    def values(self, posterior: Posterior, draws: Draws) -> Shaped[np.ndarray, "chain draw"]:
        return mean_losses(posterior, draws)

    def encoding(self, values: Values) -> Encoding:
        return Standardised.of("The losses of networks", values)

    def blank(self) -> Encoding:
        return _blank()


def mean_losses(posterior: Posterior, draws: Draws) -> Shaped[np.ndarray, "chain draw"]:
    """−(1/n) Σ_i log p(y_i | x_i, θ) of each network on the posterior's data, untempered; smaller is better."""
    rows = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), draws.params)
    found = in_batches(jax.tree_util.Partial(_mean_loss, posterior), min(_NUM_AT_ONCE, len(draws)), rows)
    return np.asarray(found).reshape(np.shape(draws.log_density))


def _mean_loss(posterior: Posterior, parameters: Parameters) -> Scalar:
    return -jnp.mean(posterior.pointwise_log_likelihood(parameters))


def _noted(draws: Draws, name: str) -> Shaped[np.ndarray, "chain draw"]:
    require_known("What a flow is told about networks, in `info` of draws,", name, draws.info)
    return np.asarray(draws.info[name])


def _blank() -> Encoding:
    return Standardised.of("", np.array([0.0, 1.0]))


def _require_share(name: str, dropped: Scalar) -> None:
    inside, remedy = 0 <= float(dropped) < 1, "Pass a share such as 0.1."
    require(inside, f"`dropped` of {name} must be from 0 to below 1", float(dropped), remedy)
