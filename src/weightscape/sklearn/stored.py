"""A fit as plain data and back, so that scikit-learn can pickle an estimator.

Networks hold functions of JAX, which cannot be pickled; what is written are names, numbers and NumPy arrays, in the
form of the library's own files.
"""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from weightscape.core.config import Encoded, decode, encode
from weightscape.core.facts import Facts
from weightscape.draws import Draws, Header, Health, decode_header, encode_header
from weightscape.draws.sampled import from_arrays, to_arrays
from weightscape.inference import Approximation
from weightscape.inference.approximation_files import KINDS
from weightscape.posterior import Posterior
from weightscape.sklearn.fit import Fit


class StoredDraws(NamedTuple):
    """Draws as data."""

    header: Encoded
    arrays: dict[str, np.ndarray]
    health: Health
    facts: dict[str, Any]


class StoredApproximation(NamedTuple):
    """A density as data; `kind` is its name among those that can be stored."""

    kind: str
    header: Encoded
    parts: Encoded
    facts: dict[str, Any]


class StoredFit(NamedTuple):
    """A fit as data; `x` and `y` are as the network sees them."""

    header: Encoded
    x: np.ndarray
    y: np.ndarray
    approximation: StoredApproximation | None
    draws: StoredDraws


def store(fit: Fit) -> StoredFit:
    """Write a fit as data; raises where the network has a part without a name."""
    posterior, approximation, draws = fit
    encode(posterior.model.network)
    return StoredFit(
        encode_header(Header.of(posterior)),
        np.asarray(posterior.x),
        np.asarray(posterior.y),
        None if approximation is None else _store_approximation(approximation),
        _store_draws(draws),
    )


def restore(stored: StoredFit) -> Fit:
    """The fit that `store` wrote."""
    header = decode_header(stored.header, None)
    x, y = jnp.asarray(stored.x), jnp.asarray(stored.y)
    one = jnp.ones((), x.dtype)
    posterior = Posterior(header.model, x, y, header.scaling, header.example, one, one)
    density = stored.approximation
    approximation = None if density is None else _restore_approximation(density, posterior)
    return Fit(posterior, approximation, _restore_draws(stored.draws))


def _store_draws(draws: Draws) -> StoredDraws:
    header = encode_header(Header(draws.model, draws.scaling, draws.example))
    return StoredDraws(header, to_arrays(draws.sampled()), draws.health, dict(draws.facts))


def _restore_draws(stored: StoredDraws) -> Draws:
    header = decode_header(stored.header, None)
    sampled = from_arrays(stored.arrays, header.model.parameters_like(header.standardised_example()))
    params, log_density, info, log_weights, log_proposal = sampled
    known = (info, log_weights, log_proposal, stored.health, Facts(**stored.facts))
    return Draws(params, log_density, *header, *known)


def _store_approximation(approximation: Approximation) -> StoredApproximation:
    name, parts = next((name, stored) for name, (kind, stored, _) in KINDS.items() if type(approximation) is kind)
    encoded = encode({**parts(approximation), "estimate": approximation.estimate})
    return StoredApproximation(name, encode_header(approximation.header), encoded, dict(approximation.facts))


def _restore_approximation(stored: StoredApproximation, posterior: Posterior) -> Approximation:
    _, _, rebuild = KINDS[stored.kind]
    parts, header = {**decode(*stored.parts), "facts": Facts(**stored.facts)}, decode_header(stored.header, None)
    return rebuild(parts, header, dataclasses.replace(posterior, model=header.model))  # scales may have been tuned
