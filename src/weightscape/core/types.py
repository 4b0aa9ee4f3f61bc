"""Names for the types that cross the whole library."""

from typing import TypeAlias

from jaxtyping import Array, Float, Key, PyTree

PRNGKey: TypeAlias = Key[Array, ""]
Scalar: TypeAlias = Float[Array, ""]
Tree: TypeAlias = PyTree
"""Any nesting of tuples, lists, dicts and modules with arrays at its leaves."""
