"""What draws carry besides arrays: the model, the scaling and an example, as data.

A network that the library does not know is stored as a note and must be passed to `Draws.load`.
"""

from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float

from weightscape.core.checks import InputError
from weightscape.core.config import Encoded, decode, encode
from weightscape.core.layout import Layout
from weightscape.data import Batch, Scaling
from weightscape.networks import Network
from weightscape.posterior import Joint, Model, Posterior


class Header(NamedTuple):
    """The model, the scaling, and one point in original units."""

    model: Joint
    scaling: Scaling | None
    example: Batch

    @staticmethod
    def of(posterior: Posterior) -> "Header":
        """What draws from a posterior carry."""
        return Header(posterior.model, posterior.scaling, posterior.example)

    def layout(self) -> Layout:
        """Where the entries of a position lie in a flat vector."""
        start = lambda key: self.model.start_position(key, self.standardised_example())
        return Layout.of(jax.eval_shape(start, jax.random.key(0)))

    def standardised_example(self) -> Float[Array, "point ..."]:
        """The example's inputs as the network sees them."""
        return self.example.x if self.scaling is None else self.scaling.inputs(self.example.x)


def encode_header(header: Header) -> Encoded:
    """A header as JSON and arrays."""
    model, scaling, example = header
    parts = {"likelihood": model.likelihood, "prior": model.prior, "scaling": scaling, "x": example.x, "y": example.y}
    try:
        encoded = encode({**parts, "network": model.network})
    except InputError:
        encoded = encode({**parts, "network": None})  # raises again where another part is unknown
        encoded.tree["dict"]["network"] = {"unknown": type(model.network).__name__}
    return encoded


def decode_header(encoded: Encoded, network: Network | None) -> Header:
    """The inverse of `encode_header`; a `network` that is passed takes the place of the stored one."""
    tree = {"dict": dict(encoded.tree["dict"])}
    stored = tree["dict"]["network"]
    if network is None and _is_unknown(stored):
        raise InputError(
            f"The stored network must be known, got {stored['unknown']!r}. Pass it: `load(path, network=...)`."
        )
    if network is not None:
        tree["dict"]["network"] = None
    parts: dict[str, Any] = decode(tree, encoded.arrays)
    example = Batch(parts["x"], parts["y"], parts["scaling"])
    model = Model(network or parts["network"], parts["likelihood"], parts["prior"]).bind(example)
    return Header(model, parts["scaling"], example)


def _is_unknown(stored: Any) -> bool:
    return isinstance(stored, dict) and "unknown" in stored
