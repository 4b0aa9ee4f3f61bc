"""Random keys are typed, asked for by name, and used once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from weightscape.core.checks import require_type
from weightscape.core.types import PRNGKey


def require_key(key: object, where: str) -> None:
    """Raise unless `key` is one typed key, as `jax.random.key(seed)` makes it."""
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    remedy = "Pass `jax.random.key(seed)`."
    require_type(typed, f"`key` of {where} must be a typed random key", type(key).__name__, remedy)
    scalar = getattr(key, "shape", None) == ()
    require_type(scalar, f"`key` of {where} must be a single key", f"shape {getattr(key, 'shape', None)}", remedy)


def chain_keys(key: PRNGKey, num_chains: int) -> Key[Array, " chain"]:
    """One key for each chain; chain i's key does not depend on how many chains there are."""
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(num_chains))
