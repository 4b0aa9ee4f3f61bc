"""A vector over channels beside an array whose last axis is the channel."""

from jaxtyping import Array, Float


def along_channels(vector: Float[Array, " channel"], like: Float[Array, "... channel"]) -> Float[Array, "... channel"]:
    """`vector` with as many leading axes of size one as it takes to meet `like`."""
    return vector.reshape((1,) * (like.ndim - 1) + vector.shape)
